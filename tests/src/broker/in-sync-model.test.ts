import { describe, expect, it } from 'vitest';
import { REPLICA_LAG_MS } from '../../../src/broker/in-sync.ts';
import {
  actions,
  answer,
  attach,
  FOLLOWERS,
  keyOf,
  LEADER,
  report,
  showRow,
  start,
  take,
  told,
  violation,
  type Follower,
  type World,
} from './in-sync-model.ts';

/** Steps from a start that are followed, every one of them. */
const DEPTH = 9;
/** Steps from a start after which the world is let come to rest. */
const REST_DEPTH = 6;
const REST_ROUNDS = 6;

interface Node {
  readonly world: World;
  readonly before: Node | null;
  readonly name: string;
}

function pathTo(node: Node | null): string[] {
  return node === null || node.before === null ? [] : [...pathTo(node.before), node.name];
}

/** Every world within `depth` steps of a start, each once, nearest first. */
function* reachable(from: World, depth: number): Generator<{ node: Node; steps: number }> {
  const seen = new Set([keyOf(from)]);
  let level: Node[] = [{ world: from, before: null, name: '' }];
  for (let steps = 0; level.length > 0; steps++) {
    const next: Node[] = [];
    for (const node of level) {
      yield { node, steps };
      if (steps === depth) continue;
      for (const { name, next: world } of actions(node.world)) {
        const key = keyOf(world);
        if (seen.has(key)) continue;
        seen.add(key);
        next.push({ world, before: node, name });
      }
    }
    level = next;
  }
}

/** From here on the control plane is well, and of the copies those that are given. Reports under way are lost or taken. */
function rest(world: World, alive: readonly Follower[], isLost: boolean): World {
  let w = world;
  for (const id of FOLLOWERS) if (!alive.includes(id)) w = told(w, { type: 'detached', copy: id });
  if (isLost) {
    for (const one of w.reports) if (one.accepted === null) w = answer(w, one, false);
    w = { ...w, reports: w.reports.filter(({ accepted }) => accepted !== null) };
  }
  for (let round = 0; round < REST_ROUNDS; round++) {
    w = report(w) ?? w;
    while (w.reports.some(({ accepted }) => accepted === null)) {
      w = take(
        w,
        w.reports.findIndex(({ accepted }) => accepted === null),
      );
    }
    for (const one of w.reports) w = answer(w, one, one.accepted === true);
    w = showRow({ ...w, reports: [] });
    for (const id of alive) {
      w = attach({ ...w, ends: { ...w.ends, [id]: w.leader.end } }, id);
    }
    w = { ...w, nowMs: w.nowMs + REPLICA_LAG_MS + 1 };
  }
  return w;
}

describe.each([{ inSync: [LEADER] }, { inSync: [LEADER, 'x'] }, { inSync: [LEADER, 'x', 'y'] }])(
  'every order of reports, answers, losses and copies from $inSync',
  ({ inSync }) => {
    it('acknowledges nothing that a copy in sync lacks, now or by a report still under way', () => {
      let count = 0;
      for (const { node } of reachable(start(inSync), DEPTH)) {
        count++;
        const wrong = violation(node.world);
        if (wrong !== null) expect.fail(`${wrong}: ${pathTo(node).join(', ')}`);
      }
      expect(count).toBeGreaterThan(10_000);
    });

    it('acknowledges everything once the copies that live have it, whatever was lost before', () => {
      for (const { node } of reachable(start(inSync), REST_DEPTH)) {
        for (const alive of [[], ['x'], ['y'], ['x', 'y']] as const) {
          for (const isLost of [true, false]) {
            const { leader } = rest(node.world, alive, isLost);
            if (leader.acknowledged === leader.end && leader.perhapsAdded.length === 0) continue;
            const path = pathTo(node).join(', ');
            expect.fail(`blocked with ${alive.join(' and ') || 'no copy'} alive (lost: ${isLost}): ${path}`);
          }
        }
      }
    });
  },
);
