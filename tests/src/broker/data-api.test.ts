import { beforeEach, describe, expect, it } from 'vitest';
import { serveData } from '../../../src/broker/data-api.ts';
import type { LedShard } from '../../../src/broker/led-shard.ts';
import { EvenkeelError } from '../../../src/errors.ts';
import type { Connection } from '../../../src/net.ts';

const SHARD = 'stream:orders/0';

/** Promises that the test lets go. */
class Held {
  readonly #waiting: (() => void)[] = [];

  wait<T>(value: T): Promise<T> {
    return new Promise((resolve) => this.#waiting.push(() => resolve(value)));
  }

  async release(): Promise<void> {
    for (const go of this.#waiting.splice(0)) go();
    for (let i = 0; i < 10; i++) await Promise.resolve();
  }
}

describe('answers to a client of a broker', () => {
  let disk: Held;
  let answers: Readonly<Record<string, unknown>>[];
  /** What the broker leads under its lease; `null`: the lease is over. */
  let served: LedShard | null;
  let ask: (type: string, fields: object) => void;

  function led(epoch: number): LedShard {
    const one = {
      epoch,
      readableEnd: 1,
      append: () => disk.wait(7),
      log: { read: () => disk.wait([{ epoch: 1, payload: Buffer.from('old') }]) },
    };
    return one as unknown as LedShard;
  }

  beforeEach(() => {
    disk = new Held();
    answers = [];
    served = led(3);
    const connection = {
      send: (frame: string) => void answers.push(JSON.parse(frame) as Record<string, unknown>),
    } as unknown as Connection;
    const serve = (): LedShard => {
      if (served === null) throw new EvenkeelError('unavailable', 'not served here', { leader: 'b2' });
      return served;
    };
    serveData({ serve }, connection);
    ask = (type, fields) => connection.onMessage?.(JSON.stringify({ id: 1, type, shard: SHARD, ...fields }));
  });

  it('say where the records are while the lease runs', async () => {
    ask('append', { records: ['a'] });
    await disk.release();
    ask('read', { from: 0 });
    await disk.release();
    expect(answers).toEqual([
      { id: 1, type: 'append.ok', offset: 7, epoch: 3 },
      { id: 1, type: 'read.ok', end: 1, records: [{ offset: 0, epoch: 1, value: 'old' }] },
    ]);
  });

  it('say that the outcome of an append is unknown once the lease has ended, or an epoch has passed', async () => {
    for (const later of [null, led(5)]) {
      served = led(3);
      ask('append', { records: ['a'] });
      served = later;
      await disk.release();
      expect(answers.pop()).toMatchObject({ type: 'error', error: { code: 'outcome_unknown' } });
    }
  });

  it('show nothing that was read from disk while the lease ended, or an epoch passed', async () => {
    for (const later of [null, led(5)]) {
      served = led(3);
      ask('read', { from: 0 });
      served = later;
      await disk.release();
      expect(answers.pop()).toMatchObject({ type: 'error', error: { code: 'unavailable', retriable: true } });
    }
  });
});
