import { describe, expect, it } from 'vitest';
import type { BrokerPush, WatchedAssignment, WatchedBroker } from '../../../src/broker-protocol.ts';
import { BrokerView } from '../../../src/client/broker-view.ts';

const row = (shard: string): WatchedAssignment => ({
  shard,
  leader: 'b1',
  replicas: ['b1'],
  inSync: ['b1'],
  generation: 5,
  epoch: 5,
  state: 'active',
  failedMoves: 0,
  move: null,
  resourceRevision: 1,
});

const snapshot = (revision: number, shards: readonly string[], done: boolean): BrokerPush => ({
  type: 'watch.snapshot',
  watchId: 1,
  revision,
  assignments: shards.map(row),
  brokers: shards.map((shard) => ({ id: `of ${shard}` }) as WatchedBroker),
  done,
});

describe('the view of a broker', () => {
  it('shows a snapshot once it is whole', () => {
    const view = new BrokerView('b1');
    expect(view.take(snapshot(3, ['s/0'], false))).toBeNull();
    expect([view.assignments.size, view.revision]).toEqual([0, 0]);
    expect(view.take(snapshot(3, ['s/1'], true))).toEqual({ kind: 'all' });
    expect([...view.assignments.keys()]).toEqual(['s/0', 's/1']);
    expect(view.revision).toBe(3);
  });

  it.each([
    ['a lost connection', (view: BrokerView) => view.interrupt()],
    ['a resync', (view: BrokerView) => void view.take({ type: 'watch.resync', watchId: 1 })],
  ])('joins no half of a snapshot from before %s to the next one', (_, interrupt) => {
    const view = new BrokerView('b1');
    view.take(snapshot(3, ['s/0'], false));
    interrupt(view);
    view.take(snapshot(4, ['s/1'], true));
    expect([...view.assignments.keys()]).toEqual(['s/1']);
    expect([...view.brokers.keys()]).toEqual(['of s/1']);
    expect(view.revision).toBe(4);
  });
});
