import { describe, expect, it } from 'vitest';
import type { Timer } from '../../../raft/index.ts';
import type { ControlPlane } from '../../../src/control-plane.ts';
import { ShardMap, type Change } from '../../../src/state/index.ts';
import { ChangeRing } from '../../../src/watch/index.ts';
import { BrokerWatch, CHANGES_AT_ONCE, SnapshotGate } from '../../../src/wire/broker-watch.ts';
import { ROWS_PER_NOTIFICATION, WATCH_METHODS } from '../../../src/wire/rpc-watch.ts';
import { StepClock } from '../../support/step-clock.ts';
import { assignmentRow } from '../apply/harness.ts';

interface Pushed {
  readonly type?: string;
  readonly revision?: number;
  readonly more?: true;
  readonly changes?: readonly object[];
}

/** Rows of b1 that were looked at, whoever looked: what a filter costs. */
class Looked {
  rows = 0;

  changes(count: number): Change[] {
    return Array.from({ length: count }, (_, n) => {
      const row = {
        ...assignmentRow(`stream:s/${n}`, ['b1']),
        drained: false,
        stagedIncarnation: null,
        served: 'leader' as const,
      };
      const looked = (): void => void (this.rows += 1);
      const assignment = {
        ...{ ...row, decision: null, revision: 1 },
        get replicas() {
          looked();
          return row.replicas;
        },
      };
      return { kind: 'assignment', assignment, previous: null };
    });
  }
}

/** Its timers fire when the test says so. */
class TimedClock extends StepClock {
  #timers: { readonly callback: () => void; readonly delayMs: number }[] = [];

  override setTimeout(callback: () => void, delayMs: number): Timer {
    const timer = { callback, delayMs };
    this.#timers.push(timer);
    return timer;
  }

  /** All that were set for at most so long. */
  fire(delayMs: number): void {
    const due = this.#timers.filter((timer) => timer.delayMs <= delayMs);
    this.#timers = this.#timers.filter((timer) => timer.delayMs > delayMs);
    for (const { callback } of due) callback();
  }
}

function planeOf(ring: ChangeRing): ControlPlane {
  const state = { revision: 0, resources: new Map(), brokers: new Map(), assignments: new ShardMap() };
  return { feed: ring, state } as unknown as ControlPlane;
}

describe('a revision of many changes', () => {
  it('is looked through by each broker watch a part a turn, and comes whole and in order', async () => {
    const clock = new StepClock();
    const ring = new ChangeRing();
    const pushed: Pushed[] = [];
    const host = {
      ...{ gate: new SnapshotGate(), plane: planeOf(ring), clock },
      push: (message: object) => void pushed.push(message),
      unreadBytes: () => 0,
      tooSlow: () => undefined,
    };
    const watches = ['b1', 'b2'].map((broker, id) => new BrokerWatch(host, id, broker));
    for (const watch of watches) watch.start(0);
    await clock.run();
    const looked = new Looked();
    const count = 2 * ROWS_PER_NOTIFICATION + 500;
    ring.push({ revision: 1, changes: looked.changes(count) });
    ring.push({ revision: 2, changes: looked.changes(3) });
    expect(looked.rows).toBeLessThanOrEqual(2 * 3);
    const perRow = 3;
    while (!clock.isIdle) {
      const before = looked.rows;
      await clock.turn();
      expect(looked.rows - before).toBeLessThanOrEqual(perRow * watches.length * CHANGES_AT_ONCE);
    }
    expect(pushed.map(({ revision, more, changes }) => [revision, more, changes?.length])).toEqual([
      [1, true, 1_000],
      [1, true, 1_000],
      [1, undefined, 500],
      [2, undefined, 3],
    ]);
    for (const watch of watches) watch.end();
  });

  it('comes to an admin watch in parts of 1,000, a turn each, all but the last with `more`', async () => {
    const clock = new StepClock();
    const ring = new ChangeRing();
    const notified: Pushed[] = [];
    const subscriber = {
      watches: new Map<number, () => void>(),
      notify: (_method: string, params: object) => void notified.push(params),
      bufferedBytes: () => 0,
      nextWatchId: () => 1,
    };
    const watch = WATCH_METHODS.find(({ name }) => name === 'watch');
    const context = { plane: planeOf(ring), clock, subscriber } as never;
    await watch?.run({ consistency: 'local' }, () => context);
    await clock.run();
    ring.push({ revision: 1, changes: new Looked().changes(2 * ROWS_PER_NOTIFICATION + 1) });
    ring.push({ revision: 2, changes: new Looked().changes(1) });
    let turns = 0;
    for (; !clock.isIdle; turns++) await clock.turn();
    expect(notified.map(({ revision, more, changes }) => [revision, more, changes?.length])).toEqual([
      [1, true, 1_000],
      [1, true, 1_000],
      [1, undefined, 1],
      [2, undefined, 1],
    ]);
    expect(turns).toBe(3);
    for (const end of subscriber.watches.values()) end();
  });

  it('that an admin watch finds in the ring comes before what is pushed meanwhile', async () => {
    const clock = new StepClock();
    const ring = new ChangeRing();
    const notified: Pushed[] = [];
    const subscriber = {
      watches: new Map<number, () => void>(),
      notify: (_method: string, params: object) => void notified.push(params),
      bufferedBytes: () => 0,
      nextWatchId: () => 1,
    };
    ring.push({ revision: 1, changes: new Looked().changes(ROWS_PER_NOTIFICATION + 1) });
    ring.push({ revision: 2, changes: new Looked().changes(1) });
    const watch = WATCH_METHODS.find(({ name }) => name === 'watch');
    const context = { plane: planeOf(ring), clock, subscriber } as never;
    await watch?.run({ consistency: 'local', fromRevision: 0 }, () => context);
    await clock.turn();
    ring.push({ revision: 3, changes: new Looked().changes(1) });
    await clock.run();
    ring.push({ revision: 4, changes: new Looked().changes(1) });
    expect(notified.map(({ revision, more, changes }) => [revision, more, changes?.length])).toEqual([
      [1, true, 1_000],
      [1, undefined, 1],
      [2, undefined, 1],
      [3, undefined, 1],
      [4, undefined, 1],
    ]);
    for (const end of subscriber.watches.values()) end();
  });

  it('that does not fit any more starts an admin watch over once, however much of the ring is left', async () => {
    const clock = new TimedClock();
    const ring = new ChangeRing();
    const notified: string[] = [];
    let unread = 0;
    const subscriber = {
      watches: new Map<number, () => void>(),
      notify: (method: string) => {
        notified.push(method);
        unread += 2 * 1024 * 1024;
      },
      bufferedBytes: () => unread,
      nextWatchId: () => 1,
    };
    for (let revision = 1; revision <= 20; revision++) {
      ring.push({ revision, changes: new Looked().changes(1) });
    }
    const plane = planeOf(ring);
    Object.assign(plane.state, { revision: 20, policy: {} });
    const watch = WATCH_METHODS.find(({ name }) => name === 'watch');
    const context = { plane, clock, subscriber } as never;
    await watch?.run({ consistency: 'local', fromRevision: 0 }, () => context);
    await clock.run();
    expect(notified).toEqual(['watch.changes', 'watch.changes', 'watch.changes']);
    ring.push({ revision: 21, changes: new Looked().changes(1) });
    Object.assign(plane.state, { revision: 21 });
    unread = 0;
    clock.fire(50);
    await clock.run();
    unread = 0;
    clock.fire(50);
    await clock.run();
    expect(notified.slice(3)).toEqual(['watch.resync', 'watch.snapshot']);
    unread = 0;
    ring.push({ revision: 22, changes: new Looked().changes(1) });
    expect(notified.slice(5)).toEqual(['watch.changes']);
    for (const end of subscriber.watches.values()) end();
  });
});
