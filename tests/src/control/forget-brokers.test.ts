import { describe, expect, it } from 'vitest';
import { MAX_BROKERS } from '../../../src/command/index.ts';
import {
  brokersToForget,
  FORGET_BROKER_AFTER_MS,
  MAX_FORGOTTEN_AT_ONCE,
} from '../../../src/control/forget-brokers.ts';
import { DEFAULT_BROKER_TIMINGS as timings } from '../../../src/control/index.ts';
import { silenceUntilFreeMs } from '../../../src/control/timings.ts';
import { BrokerWorld } from '../../support/broker-world.ts';
import { RawBroker } from '../../support/raw-broker.ts';
import { Harness } from '../apply/harness.ts';

const SINCE_MS = 5_000;

function gone(lifecycle: 'down' | 'left' = 'down'): Harness {
  const h = new Harness();
  h.register('b1');
  h.ok({ type: 'setLifecycle', broker: 'b1', incarnation: 1, lifecycle, silentSinceMs: 0 });
  return h;
}

const at = (h: Harness, nowMs: number): string[] =>
  brokersToForget(h.state, nowMs, timings).map(({ id }) => id);

describe('a broker that is gone', () => {
  it.each(['down', 'left'] as const)('is forgotten once it has been %s for the stated time', (lifecycle) => {
    const h = gone(lifecycle);
    const { downSinceMs } = h.state.brokers.get('b1') ?? {};
    const dueMs = (downSinceMs ?? NaN) + FORGET_BROKER_AFTER_MS;
    expect(at(h, dueMs - 1)).toEqual([]);
    expect(at(h, dueMs)).toEqual(['b1']);
  });

  it('stays while it is live, drained, or named by an assignment', () => {
    const h = gone();
    const late = FORGET_BROKER_AFTER_MS * 2;
    h.register('b2');
    expect(at(h, late)).toEqual(['b1']);
    h.ok({ type: 'setDrain', broker: 'b1', drain: true });
    expect(at(h, late)).toEqual([]);
    const named = { brokers: gone().state.brokers, copies: new Map([['b1', 1]]) };
    expect(brokersToForget(named, late, timings)).toEqual([]);
  });

  it('goes as soon as its lease is over where brokers crowd the limit, some at a time', () => {
    const row = gone().state.brokers.get('b1');
    if (row === undefined) throw new Error('b1 is registered');
    const rows = (count: number) =>
      new Map(
        Array.from({ length: count }, (_, i) => [`p${i}`, { ...row, id: `p${i}`, downSinceMs: SINCE_MS }]),
      );
    const found = (count: number, nowMs: number): number =>
      brokersToForget({ brokers: rows(count), copies: new Map() }, nowMs, timings).length;
    const freeMs = SINCE_MS + silenceUntilFreeMs(timings);
    expect(found(MAX_BROKERS, freeMs - 1)).toBe(0);
    expect(found(MAX_BROKERS, freeMs)).toBe(MAX_FORGOTTEN_AT_ONCE);
    expect(found(MAX_BROKERS / 2, freeMs)).toBe(0);
  });
});

it('the leader forgets brokers by itself, and a broker that comes back is another incarnation', async () => {
  const w = new BrokerWorld({});
  await w.node('n1');
  w.quorum.elect('n1');
  const pod = await RawBroker.open(w, 'n1');
  await pod.register('pod-1');
  // It sends nothing more.
  await w.until('it is down', () => w.quorum.machine.view.brokers.get('pod-1')?.lifecycle === 'down');
  await w.run(FORGET_BROKER_AFTER_MS + 1_000);
  expect(w.quorum.machine.view.brokers.size).toBe(0);
  await (await RawBroker.open(w, 'n1')).register('pod-1');
  expect(w.quorum.machine.view.brokers.get('pod-1')?.incarnation).toBe(2);
}, 60_000);
