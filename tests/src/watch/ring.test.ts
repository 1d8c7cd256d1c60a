import { describe, expect, it } from 'vitest';
import type { Change, ChangeSet } from '../../../src/state/index.ts';
import { ChangeRing } from '../../../src/watch/index.ts';

const set = (revision: number, rows = 1): ChangeSet => ({
  revision,
  changes: Array.from({ length: rows }, (): Change => ({ kind: 'brokerRemoved', id: `b${revision}` })),
});

function follow(ring: ChangeRing, after: number) {
  const seen: number[] = [];
  let lost = 0;
  const stop = ring.subscribe(
    after,
    ({ revision }) => seen.push(revision),
    () => lost++,
  );
  return { seen, stop, lost: () => lost };
}

describe('a subscription', () => {
  it('gets what came after its revision, then everything new, in order, each once', () => {
    const ring = new ChangeRing();
    for (const revision of [2, 3, 7]) ring.push(set(revision));
    const { seen, stop } = follow(ring, 2);
    expect(seen).toEqual([3, 7]);
    ring.push(set(9));
    expect(seen).toEqual([3, 7, 9]);
    stop();
    ring.push(set(10));
    expect(seen).toEqual([3, 7, 9]);
  });

  it('between two revisions continues with the later one', () => {
    const ring = new ChangeRing();
    for (const revision of [2, 3, 7]) ring.push(set(revision));
    expect(follow(ring, 5).seen).toEqual([7]);
    expect(follow(ring, 7).seen).toEqual([]);
  });

  it('that is ahead of this node is sent only what it has not seen', () => {
    const ring = new ChangeRing();
    ring.push(set(3));
    const { seen } = follow(ring, 5);
    for (const revision of [4, 5, 6]) ring.push(set(revision));
    expect(seen).toEqual([6]);
  });

  it('may end in the middle of what it is sent, its own or another’s', () => {
    const ring = new ChangeRing();
    const seen: string[] = [];
    let stopB: () => void = () => undefined;
    const stopA = ring.subscribe(
      0,
      ({ revision }) => {
        seen.push(`a${revision}`);
        stopA();
        stopB();
      },
      () => undefined,
    );
    stopB = ring.subscribe(
      0,
      ({ revision }) => seen.push(`b${revision}`),
      () => undefined,
    );
    ring.push(set(1));
    ring.push(set(2));
    expect(seen).toEqual(['a1']);
  });
});

describe('the ring', () => {
  it('holds so many sets; a watcher behind its floor is lost at once, one at the floor goes on', () => {
    const ring = new ChangeRing({ maxSets: 3, maxRows: 100 });
    for (let revision = 1; revision <= 6; revision++) ring.push(set(revision));
    expect(ring.floor).toBe(3);
    expect(follow(ring, 3)).toMatchObject({ seen: [4, 5, 6] });
    const behind = follow(ring, 2);
    expect(behind.seen).toEqual([]);
    expect(behind.lost()).toBe(1);
    ring.push(set(7));
    expect(behind.seen).toEqual([]);
  });

  it('holds so many rows; a set larger than the ring is told and not kept', () => {
    const ring = new ChangeRing({ maxSets: 100, maxRows: 10 });
    const { seen } = follow(ring, 0);
    ring.push(set(1, 6));
    ring.push(set(2, 6));
    expect(ring.floor).toBe(1);
    ring.push(set(3, 11));
    expect(ring.floor).toBe(3);
    expect(seen).toEqual([1, 2, 3]);
    expect(follow(ring, 3).seen).toEqual([]);
    expect(follow(ring, 2).lost()).toBe(1);
  });

  it('stays right over many turns', () => {
    const ring = new ChangeRing({ maxSets: 5, maxRows: 1_000 });
    for (let revision = 1; revision <= 500; revision++) {
      ring.push(set(revision));
      const from = Math.max(0, revision - 5);
      expect(ring.floor).toBe(from);
      expect(follow(ring, from).seen).toEqual(
        Array.from({ length: revision - from }, (_, i) => from + 1 + i),
      );
    }
  });

  it('is emptied by an installed snapshot, which everyone is told once', () => {
    const ring = new ChangeRing();
    ring.push(set(1));
    const { seen, lost } = follow(ring, 0);
    ring.reset(40);
    expect(lost()).toBe(1);
    expect(ring).toMatchObject({ floor: 40, revision: 40 });
    ring.push(set(41));
    expect(seen).toEqual([1]);
    expect(follow(ring, 39).lost()).toBe(1);
    expect(follow(ring, 40).seen).toEqual([41]);
  });

  it('takes revisions only upwards', () => {
    const ring = new ChangeRing();
    ring.push(set(4));
    expect(() => ring.push(set(4))).toThrow(/came after 4/);
  });
});
