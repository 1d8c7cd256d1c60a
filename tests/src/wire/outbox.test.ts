import { expect, test } from 'vitest';
import type { Clock } from '../../../raft/index.ts';
import type { Connection } from '../../../src/net.ts';
import { Outbound, textOf } from '../../../src/wire/outbound.ts';
import { Outbox } from '../../../src/wire/outbox.ts';
import { READ_WINDOW_MS } from '../../../src/wire/read-pace.ts';
import { StepClock } from '../../support/step-clock.ts';

/** A client that has read what `read` says, and time that passes by hand. */
function world() {
  const steps = new StepClock();
  let nowMs = 0;
  let timers: (() => void)[] = [];
  const clock: Clock = {
    now: () => nowMs,
    wallNow: () => nowMs,
    setTimeout: (callback) => (timers.push(callback), {}),
    clearTimeout: () => undefined,
    defer: (callback) => steps.defer(callback),
  };
  const sent: string[] = [];
  let message = '';
  let buffered = 0;
  const connection: Connection = {
    subprotocol: '',
    remoteAddress: 'elsewhere:1',
    get bufferedBytes() {
      return buffered;
    },
    send(data, more) {
      message += String(data);
      buffered += data.length;
      if (more === true) return;
      sent.push(message);
      message = '';
    },
    close: () => undefined,
    terminate: () => undefined,
    onMessage: () => undefined,
    onClose: () => undefined,
  };
  const outbound = new Outbound(clock);
  let stuck = 0;
  const outbox = new Outbox(connection, clock, () => (stuck += 1));
  return {
    outbound,
    outbox,
    sent,
    get stuck() {
      return stuck;
    },
    get buffered() {
      return buffered;
    },
    /** The client reads; then time passes. */
    async pass(ms: number, read: number): Promise<void> {
      buffered = Math.max(0, buffered - read);
      nowMs += ms;
      const due = timers;
      timers = [];
      for (const timer of due) timer();
      await steps.run();
    },
  };
}

const long = (fill: string) => ({
  pieces: Array.from({ length: 20 }, () => fill.repeat(100_000)),
  bytes: 2_000_000,
});

test('hands a connection what it can take, the rest as that is read, each message whole and in order', async () => {
  const w = world();
  w.outbox.send(w.outbound.hold(long('a')));
  w.outbox.send(w.outbound.hold(textOf('between')));
  w.outbox.send(w.outbound.hold(long('b')));
  expect(w.buffered).toBeLessThan(400_000);
  expect(w.outbound.bytes).toBe(4_000_009);
  for (let i = 0; i < 100 && w.outbound.bytes > 0; i += 1) {
    await w.pass(5, 100_000);
    expect(w.buffered).toBeLessThan(400_000);
  }
  expect(w.sent.map((text) => `${text[0]}${text.length}`)).toEqual(['a2000000', '"9', 'b2000000']);
  expect(w.outbound.bytes).toBe(0);
  expect(w.stuck).toBe(0);
});

test('a client that reads nothing is told of once its time is over, one that reads on is not', async () => {
  const w = world();
  w.outbox.send(w.outbound.hold(long('a')));
  await w.pass(READ_WINDOW_MS - 1, 0);
  expect(w.stuck).toBe(0);
  await w.pass(0, 70_000);
  await w.pass(READ_WINDOW_MS - 1, 0);
  expect(w.stuck).toBe(0);
  await w.pass(1, 10_000);
  expect(w.stuck).toBe(1);
});

test('what a lost connection did not read counts no more', async () => {
  const w = world();
  w.outbox.send(w.outbound.hold(long('a')));
  w.outbox.send(w.outbound.hold(textOf('more')));
  await w.pass(5, 300_000);
  w.outbox.end();
  expect(w.outbound.bytes).toBe(0);
  w.outbox.send(w.outbound.hold(textOf('late')));
  expect(w.outbound.bytes).toBe(0);
  await w.pass(READ_WINDOW_MS, 0);
  expect(w.stuck).toBe(0);
});

test('a node whose clients leave too much unread refuses long answers and gives short ones', async () => {
  const { outbound } = world();
  const unread = outbound.hold({ pieces: [], bytes: 512 * 1024 * 1024 - 10 });
  await expect(outbound.write('x'.repeat(20_000))).rejects.toMatchObject({ code: 'overloaded' });
  const short = await outbound.write('x');
  short.release();
  unread.release();
  unread.release();
  expect(outbound.bytes).toBe(0);
  expect((await outbound.write('x'.repeat(20_000))).bytes).toBe(20_002);
});

test('two answers of the whole state are built at once, others in the order they came', async () => {
  const { outbound } = world();
  const order: number[] = [];
  const leaves = await Promise.all([outbound.enterLarge(), outbound.enterLarge()]);
  const waiting = [1, 2, 3].map(async (n) => {
    const leave = await outbound.enterLarge();
    order.push(n);
    leave();
  });
  await Promise.resolve();
  expect(order).toEqual([]);
  leaves[0]?.();
  leaves[0]?.();
  await Promise.all(waiting);
  expect(order).toEqual([1, 2, 3]);
});
