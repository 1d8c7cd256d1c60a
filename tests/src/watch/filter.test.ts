import { beforeEach, describe, expect, it } from 'vitest';
import { filterChanges } from '../../../src/watch/index.ts';
import { decided, Harness } from '../apply/harness.ts';

let h: Harness;
let told: string[];

/** What a watch of b2 is told, in short. */
beforeEach(() => {
  h = new Harness();
  for (const id of ['b1', 'b2', 'b3']) h.register(id);
  h.create('s', { shards: 2 });
  told = [];
  h.ring.subscribe(
    h.state.revision,
    ({ changes }) => {
      for (const change of filterChanges(changes, { broker: 'b2' })) {
        if (change.kind === 'assignment') told.push(change.assignment.replicas.join());
        else if (change.kind === 'removed') told.push(`- ${change.shard}`);
        else told.push(change.kind);
      }
    },
    () => undefined,
  );
});

describe('a watch of one broker', () => {
  it('is told of its rows, and of none that never named it', () => {
    h.place({ shard: 'stream:s/0', next: decided(['b1', 'b3']) });
    h.place({ shard: 'stream:s/1', next: decided(['b1', 'b2']) });
    expect(told).toEqual(['b1,b2']);
  });

  it('is sent a row once more, as it is now, when it stops matching', () => {
    h.place({ next: decided(['b1', 'b2']) });
    h.place({ step: 'drop', next: decided(['b1']) });
    h.confirm('b1');
    expect(told).toEqual(['b1,b2', 'b1']);
  });

  it('is told when its rows are removed', () => {
    h.place({ shard: 'stream:s/0', next: decided(['b1', 'b2']) });
    h.place({ shard: 'stream:s/1', next: decided(['b1', 'b3']) });
    told.length = 0;
    h.ok({ type: 'deleteResource', kind: 'stream', name: 's', expectedRevision: null });
    expect(told).toEqual(['- stream:s/0']);
  });

  it('is told of every broker, and of neither resources nor the policy', () => {
    h.register('b4');
    h.ok({ type: 'removeBroker', broker: 'b4', incarnation: null });
    h.create('t');
    h.ok({ type: 'setPolicy', expectedRevision: null, patch: { paused: true } });
    expect(told).toEqual(['broker', 'brokerRemoved']);
  });
});

describe('a watch of everything', () => {
  it('is told of every row', () => {
    const all: number[] = [];
    h.ring.subscribe(
      h.state.revision,
      ({ changes }) => all.push(filterChanges(changes, {}).length),
      () => undefined,
    );
    h.place({ shard: 'stream:s/0', next: decided(['b1', 'b3']) });
    h.create('t');
    expect(all).toEqual([1, 0]);
  });
});
