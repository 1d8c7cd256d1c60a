import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { operator, plan, simulate, type ClusterFile, type Phase } from '../../placement/index.ts';
import { parseClusterFile, parseEvents } from '../../src/cluster-file/index.ts';
import { judgeCalm, judgeEnd } from './support/judge.ts';

/** Layouts that broke other systems, with where each was reported, and the figures they must come to. */
interface Case {
  readonly id: string;
  readonly why: string;
  readonly cluster: Record<string, unknown>;
  readonly events?: unknown;
  readonly checks: readonly ({ phase?: number; note?: string } & Record<string, unknown>)[];
}

const read = (file: string): Case[] =>
  JSON.parse(readFileSync(new URL(file, import.meta.url), 'utf8')) as Case[];
const CASES = [...read('cases/cases.json'), ...read('cases/own.json')];
const MAX_PASSES = 3_000;

type Counts = Record<string, number>;
type ByResource = Record<string, Counts>;

/** What a check may ask of a phase: counted here from its last rows and its moves, not from what it says of itself. */
function facts(before: ClusterFile, phase: Phase) {
  const { brokers, assignments } = phase.cluster;
  const ids = brokers.map((row) => row.id);
  const live = brokers.filter((row) => row.lifecycle === 'live').map((row) => row.id);
  const zone = new Map(brokers.map((row) => [row.id, row.zone ?? `\0${row.id}`]));
  const zero = (): Counts => Object.fromEntries(ids.map((id) => [id, 0]));
  const led: ByResource = {};
  const held: ByResource = {};
  const ledTotal = zero();
  const copies = zero();
  for (const row of assignments) {
    const r = row.shard.slice(0, row.shard.lastIndexOf('/'));
    const add = (counts: Counts, id: string): void => void (counts[id] = (counts[id] ?? 0) + 1);
    add((led[r] ??= zero()), row.leader);
    add(ledTotal, row.leader);
    for (const id of row.replicas) {
      add((held[r] ??= zero()), id);
      add(copies, id);
    }
  }
  const spread = (counts: Counts, of: readonly string[]): number => {
    const xs = of.map((id) => counts[id] ?? 0);
    return xs.length === 0 ? 0 : Math.max(...xs) - Math.min(...xs);
  };
  const zones = assignments.map((row) => new Set(row.replicas.map((id) => zone.get(id))).size);
  const leaders = phase.moves.filter((move) => move.role === 'leader');
  return { before, phase, ids, live, led, held, ledTotal, copies, spread, zones, leaders, assignments };
}

type Facts = ReturnType<typeof facts>;
const widest = (f: Facts, of: ByResource): number =>
  Math.max(0, ...Object.values(of).map((n) => f.spread(n, f.live)));
const falling = (xs: readonly number[]): number[] => [...xs].sort((a, b) => b - a);
const same = (a: readonly unknown[], b: readonly unknown[]): boolean => a.join() === b.join();
const names = (pattern: unknown, shard: string): boolean => shard.startsWith(String(pattern));

/** By check: whether the phase is as `v` wants it. */
const CHECKS: Record<string, (f: Facts, v: never) => boolean> = {
  settled: (f, v: boolean) => f.phase.settled === v,
  maxLeaderSpreadPerResource: (f, v: number) => widest(f, f.led) <= v,
  leaderSpreadTotal: (f, v: number) => f.spread(f.ledTotal, f.live) <= v,
  copySpreadTotal: (f, v: number) => f.spread(f.copies, f.live) <= v,
  maxCopySpreadPerResource: (f, v: number) => widest(f, f.held) <= v,
  leaders: (f, v: ByResource) => sameCounts(f.led, v),
  leadersLive: (f, v: ByResource) => sameCounts(f.led, v),
  leadersSorted: (f, v: Record<string, number[]>) => sorted(f, v, f.ids),
  leadersSortedLive: (f, v: Record<string, number[]>) => sorted(f, v, f.live),
  leaderMoves: (f, v: number) => f.leaders.length === v,
  minimumLeaderMoves: (f, v: number) => f.phase.minimumLeaderMoves === v,
  followerMoves: (f, v: number) => f.phase.moves.length - f.leaders.length === v,
  copiedMoves: (f, v: number) => f.phase.moves.filter((move) => move.copied).length === v,
  moves: (f, v: number) => f.phase.moves.length === v,
  noShardMovesTwice: (f) => new Set(f.phase.moves.map((move) => move.shard)).size === f.phase.moves.length,
  noLeaderMovesTwice: (f) => new Set(f.leaders.map((move) => move.shard)).size === f.leaders.length,
  neverMoved: (f, v: string) => !f.phase.moves.some((move) => names(v, move.shard)),
  leaderTargetsOnly: (f, v: string[]) => f.leaders.every((move) => v.includes(move.to)),
  mustNotTarget: (f, v: string[]) =>
    !f.phase.steps.some(
      (step) => ['stage', 'join', 'place', 'promote'].includes(step.step) && v.includes(step.to ?? ''),
    ),
  minZonesPerShard: (f, v: number) => f.zones.every((n) => n >= v),
  shardsByZones: (f, v: Counts) =>
    Object.entries(v).every(([z, n]) => f.zones.filter((x) => `${x}` === z).length === n),
  copies: (f, v: Counts) => Object.entries(v).every(([id, n]) => f.copies[id] === n),
  copiesMax: (f, v: Counts) => Object.entries(v).every(([id, n]) => (f.copies[id] ?? 0) <= n),
  copiesPerShard: (f, v: number) => f.assignments.every((row) => row.replicas.length === v),
  copiesPerShardLive: (f, v: number) =>
    f.assignments.every((row) => row.replicas.filter((id) => f.live.includes(id)).length === v),
  leaderOf: (f, v: Record<string, string>) =>
    Object.entries(v).every(([shard, id]) =>
      f.assignments.some((row) => row.shard === shard && row.leader === id),
    ),
  dropped: (f, v: Record<string, string>) =>
    Object.entries(v).every(([s, id]) =>
      f.assignments.every((row) => row.shard !== s || !row.replicas.includes(id)),
    ),
  firstStep: (f, v: string) => f.phase.steps[0]?.step === v,
  waitingAtLeast: (f, v: number) => f.phase.waiting.length >= v,
  unplaceable: (f, v: string[]) =>
    same(
      f.phase.unplaceable.map((row) => row.shard),
      v,
    ),
  unplaceableCount: (f, v: number) => f.phase.unplaceable.length === v,
  unspread: (f, v: string[]) =>
    same(
      f.phase.unspread.map((row) => row.shard),
      v,
    ),
  unspreadCount: (f, v: number) => f.phase.unspread.length === v,
  withinShare: (f) => {
    judgeEnd(f.phase);
    return true;
  },
  reasonContains: (f, v: string) =>
    JSON.stringify([f.phase.waiting, f.phase.unplaceable, f.phase.unspread, f.phase.conflicts]).includes(v),
  conflictsAtLeast: (f, v: number) => f.phase.conflicts.length >= v,
};

function sameCounts(led: ByResource, wanted: ByResource): boolean {
  return Object.entries(wanted).every(([r, counts]) =>
    Object.entries(counts).every(([id, n]) => (led[r]?.[id] ?? 0) === n),
  );
}

function sorted(f: Facts, wanted: Record<string, number[]>, of: readonly string[]): boolean {
  return Object.entries(wanted).every(([r, xs]) => same(falling(of.map((id) => f.led[r]?.[id] ?? 0)), xs));
}

function run({ cluster, events }: Case): { file: ClusterFile; phases: readonly Phase[] } {
  const file = parseClusterFile(JSON.stringify(cluster));
  const parsed = events === undefined ? [] : parseEvents(JSON.stringify(events), 'events');
  return {
    file,
    phases: simulate(file, { events: parsed, maxPasses: MAX_PASSES }, { plan, ...operator }).phases,
  };
}

describe('layouts that broke other systems', () => {
  it.each(CASES.map((row) => [row.id, row.why, row] as const))('%s: %s', (_id, _why, row) => {
    const { file, phases } = run(row);
    phases.forEach((phase, i) => judgeCalm(phases[i - 1]?.cluster ?? file, phase));
    for (const { phase: number, note: _note, ...wanted } of row.checks) {
      const i = number ?? phases.length - 1;
      const phase = phases[i];
      if (phase === undefined) throw new Error(`no phase ${i}`);
      const f = facts(phases[i - 1]?.cluster ?? file, phase);
      for (const [name, value] of Object.entries(wanted)) {
        const check = CHECKS[name];
        if (check === undefined) throw new Error(`unknown check ${name}`);
        expect(check(f, value as never), `phase ${i}: ${name} is not ${JSON.stringify(value)}`).toBe(true);
      }
    }
  });

  it.each(CASES.map((row) => [row.id, row] as const))('%s: the order of rows changes nothing', (_id, row) => {
    const reversed = (key: string): unknown =>
      [...((row.cluster[key] as unknown[] | undefined) ?? [])].reverse();
    const cluster = Object.fromEntries(
      Object.entries(row.cluster).map(([key, value]) => [key, Array.isArray(value) ? reversed(key) : value]),
    );
    expect(JSON.stringify(run({ ...row, cluster }).phases)).toBe(JSON.stringify(run(row).phases));
  });
});
