import { describe, expect, it } from 'vitest';
import type { Clock } from '../../../raft/index.ts';
import { createSystemClock } from '../../../src/clock.ts';
import type { StateView } from '../../../src/state/index.ts';
import { findMethod } from '../../../src/wire/index.ts';
import { MAX_LARGE_CALLS } from '../../../src/wire/outbound.ts';
import { Caller } from '../../../src/wire/rpc-call.ts';
import { countSpreads } from '../../../src/wire/rpc-levels.ts';
import { inSlices, perRevisionInSlices } from '../../../src/wire/rpc-per-revision.ts';
import { HarnessPlane } from '../../support/admin-node.ts';
import { assignmentRow, brokerRow, Harness, importOf, resource, staged } from '../apply/harness.ts';

/** A clock whose turns come only when they are asked for. */
class Turns {
  readonly #waiting: (() => void)[] = [];
  readonly clock: Clock = {
    ...createSystemClock(),
    defer: (callback) => void this.#waiting.push(callback),
  };

  async next(): Promise<boolean> {
    // Promises first: what they defer belongs to this turn.
    await new Promise((resolve) => setImmediate(resolve));
    const due = this.#waiting.splice(0);
    for (const callback of due) callback();
    return due.length > 0;
  }
}

describe('what is taken in slices', () => {
  it('looks at so many rows a turn, each once, in order', async () => {
    const turns = new Turns();
    const seen: number[] = [];
    const rows = Array.from({ length: 25 }, (_, i) => i);
    const done = inSlices(rows, turns.clock, (row) => seen.push(row), 10);
    expect(seen).toHaveLength(10);
    expect(await turns.next()).toBe(true);
    await new Promise((resolve) => setImmediate(resolve));
    expect(seen).toHaveLength(20);
    expect(await turns.next()).toBe(true);
    await done;
    expect(seen).toEqual(rows);
    expect(await turns.next()).toBe(false);
  });

  it('is taken once for all who ask at one revision, and anew at the next', async () => {
    const h = new Harness();
    h.register('b1');
    const turns = new Turns();
    let takings = 0;
    const count = perRevisionInSlices(async (state: StateView, clock) => {
      takings++;
      let brokers = 0;
      await inSlices([...state.brokers.values()], clock, () => brokers++, 1);
      return brokers;
    });
    const first = count(h.state, turns.clock);
    expect(count(h.state, turns.clock)).toBe(first);
    h.register('b2');
    const second = count(h.state, turns.clock);
    expect(second).not.toBe(first);
    while (await turns.next());
    expect([await first, await second]).toEqual([1, 2]);
    expect(takings).toBe(2);
  });

  it('compares the brokers of so many resources a turn, for a scrape and for the levels', async () => {
    const h = new Harness();
    h.register('b1');
    h.register('b2');
    for (let i = 0; i < 1_200; i++) h.create(`s${i}`);
    const turns = new Turns();
    const spreads = countSpreads(h.state, turns.clock);
    // Three slices of 500 resources, no shards to be counted before them.
    for (let turn = 0; turn < 2; turn++) expect(await turns.next()).toBe(true);
    expect(await turns.next()).toBe(false);
    expect(await spreads).toMatchObject({ resourcesOutOfLevel: 0, maxLeaderSpreadPerResource: 0 });
  });

  it.each([
    ['broker.list', {}],
    ['broker.show', { id: 'b1' }],
    ['move.list', {}],
    ['placement.levels', {}],
    ['placement.replication', {}],
  ])('is answered with the revision that it was taken of: %s', async (name, params) => {
    const h = new Harness();
    const shards = 5_000;
    const assignments = Array.from({ length: shards }, (_, i) =>
      assignmentRow(`stream:s/${i}`, ['b1', 'b2'], { move: staged() }),
    );
    const brokers = [brokerRow('b1'), brokerRow('b2')];
    const rows = { brokers, resources: [resource('s', { shards })], assignments };
    for (const command of importOf(rows)) h.ok(command);
    const turns = new Turns();
    const onFault = (error: unknown): never => {
      throw error;
    };
    const caller = new Caller({ plane: new HarnessPlane(h), clock: turns.clock, onFault });
    const { revision } = h.state;
    const answer = caller.call(findMethod(name)!, { ...params, consistency: 'local' }, { subscriber: null });
    expect(await turns.next()).toBe(true);
    h.create('more');
    while (await turns.next());
    expect(JSON.parse((await answer).pieces.join(''))).toMatchObject({ revision });
    expect(h.state.revision).toBeGreaterThan(revision);
  });

  it.each([
    ['broker.list', {}],
    ['move.list', {}],
    ['placement.levels', {}],
    ['placement.replication', {}],
    ['resource.list', {}],
    ['shard.list', {}],
  ])('waits while as many large answers as may be are under way: %s', async (name, params) => {
    const onFault = (error: unknown): never => {
      throw error;
    };
    const caller = new Caller({ plane: new HarnessPlane(), clock: createSystemClock(), onFault });
    const inside = [];
    for (let i = 0; i < MAX_LARGE_CALLS; i++) inside.push(await caller.outbound.enterLarge());
    let isAnswered = false;
    const answer = caller
      .call(findMethod(name)!, params, { subscriber: null })
      .finally(() => (isAnswered = true));
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(isAnswered).toBe(false);
    for (const leave of inside) leave();
    await answer;
  });
});
