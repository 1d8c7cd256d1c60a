import { describe, expect, it } from 'vitest';
import { hashHigh, hashLow, Rendezvous, scoreLane } from '../../placement/hash.ts';

/** Frozen for ever: two nodes of different versions must agree. Listed in placement/README.md. */
const TEXTS = [
  ['', 'ab3e7c0b', '92ca2f0e'],
  ['a', '1a80b1b3', 'ed2b7c3b'],
  ['b1', '415fbc4f', '40417760'],
  ['b2', '3799f850', 'a52f9b18'],
  ['b10', '22587691', 'f3f6f10a'],
  ['stream:orders/0', '74c9344b', '0066f946'],
  ['stream:orders/10', '75fb4d58', '6440890a'],
  ['cache:kv/0', '5e443b9a', '80a7a16b'],
] as const;

const PAIRS = [
  ['stream:orders/0', 'b1', 'fbb792de', 'abf5a119'],
  ['stream:orders/0', 'b2', 'c1bdfd80', '4ae46dd7'],
  ['stream:orders/1', 'b1', '8774e335', '2e1d2b09'],
  ['cache:kv/0', 'broker-7', '2c990be7', 'f5643fbf'],
] as const;

const ORDERS = [
  ['stream:orders/0', 'b1 b2 b3 b5 b4'],
  ['stream:orders/1', 'b5 b2 b1 b3 b4'],
  ['stream:orders/2', 'b1 b2 b4 b3 b5'],
  ['cache:kv/0', 'b2 b3 b1 b5 b4'],
] as const;

const hex = (lane: number): string => (lane >>> 0).toString(16).padStart(8, '0');

describe('rendezvous scores', () => {
  it.each(TEXTS)('hash %j as they always did', (text, high, low) => {
    expect([hex(hashHigh(text)), hex(hashLow(text))]).toEqual([high, low]);
  });

  it.each(PAIRS)('score %j on %j as they always did', (key, broker, high, low) => {
    const lanes = [scoreLane(hashHigh(key), hashHigh(broker)), scoreLane(hashLow(key), hashLow(broker))];
    expect(lanes.map(hex)).toEqual([high, low]);
  });

  it.each(ORDERS)('order brokers for %j as they always did', (key, order) => {
    const ids = ['b1', 'b2', 'b3', 'b4', 'b5'];
    const ranking = new Rendezvous(ids).of(key);
    const sorted = ids.map((_, i) => i).sort((a, b) => ranking.compare(a, b));
    expect(sorted.map((i) => ids[i]).join(' ')).toBe(order);
  });

  it.each(ORDERS)('order brokers for %j the same, its beginning hashed before', (key, order) => {
    const ids = ['b1', 'b2', 'b3', 'b4', 'b5'];
    const slash = key.indexOf('/') + 1;
    const ranking = new Rendezvous(ids).stem(key.slice(0, slash)).of(key.slice(slash));
    const sorted = ids.map((_, i) => i).sort((a, b) => ranking.compare(a, b));
    expect(sorted.map((i) => ids[i]).join(' ')).toBe(order);
  });

  it.each(['stream:orders/0', 'stream:orders/1', 'stream:orders/2'])(
    'break a tie of the high lane by the low lane of the whole key %j',
    (key) => {
      // Two texts that FNV-1a does not tell apart.
      const ids = ['costarring', 'liquid'] as const;
      expect(hashHigh(ids[0])).toBe(hashHigh(ids[1]));
      const [x, y] = ids.map((id) => scoreLane(hashLow(key), hashLow(id)));
      const wanted = Math.sign((y ?? 0) - (x ?? 0));
      const rendezvous = new Rendezvous(ids);
      for (const cut of [0, 7, key.length]) {
        const ranking = rendezvous.stem(key.slice(0, cut)).of(key.slice(cut));
        expect(Math.sign(ranking.compare(0, 1))).toBe(wanted);
      }
    },
  );

  it('break a tie of both lanes on the id', () => {
    const ranking = new Rendezvous(['same', 'same']).of('stream:x/0');
    expect(ranking.compare(0, 1)).toBe(0);
    expect(new Rendezvous(['b2', 'b1']).of('stream:x/0').compare(0, 0)).toBe(0);
  });

  it('spread first places evenly: no broker of ten is 5 % off over 20,000 shards', () => {
    const ids = Array.from({ length: 10 }, (_, i) => `b${i}`);
    const rendezvous = new Rendezvous(ids);
    const won = new Array<number>(10).fill(0);
    for (let s = 0; s < 20_000; s++) {
      const ranking = rendezvous.of(`stream:orders/${s}`);
      let best = 0;
      for (let b = 1; b < 10; b++) if (ranking.compare(b, best) < 0) best = b;
      won[best] = (won[best] ?? 0) + 1;
    }
    for (const n of won) expect(Math.abs(n - 2_000)).toBeLessThan(100);
  });
});
