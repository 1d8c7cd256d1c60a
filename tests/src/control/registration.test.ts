import { expect, test } from 'vitest';
import { VirtualClock } from '../../raft/support/virtual-clock.ts';
import { Harness } from '../apply/harness.ts';
import type { Command, Proposed } from '../../../src/command/index.ts';
import { heartbeat, register } from '../../../src/control/broker-service.ts';
import { DEFAULT_BROKER_TIMINGS, type ControlOptions } from '../../../src/control/index.ts';
import { Tenure } from '../../../src/control/tenure.ts';
import { EvenkeelError } from '../../../src/errors.ts';

test('a registration of unknown outcome leaves the one before it without a lease until it is settled', async () => {
  const timings = DEFAULT_BROKER_TIMINGS;
  const clock = new VirtualClock();
  const h = new Harness();
  const { incarnation } = h.register('b1', { storeId: 'old' });
  const waiting: Command[] = [];
  let isStalled = true;
  const plane = {
    ...{ state: h.state, feed: h.ring },
    leadership: () => ({ term: 1, leaderId: 'n1', established: true }),
    clusterTimeMs: () => clock.now(),
    readBarrier: () => Promise.resolve(),
    /** In the log at once; applied, in order, once the disks go on. */
    propose: async (command: Command, { deadlineMs }: { deadlineMs: number }): Promise<Proposed> => {
      waiting.push(command);
      if (isStalled) {
        await new Promise<void>((resolve) => void clock.setTimeout(resolve, deadlineMs));
        throw new EvenkeelError('deadline_exceeded', 'not applied in time', { outcome: 'unknown' });
      }
      for (const each of waiting.splice(0)) h.ok(each);
      return { revision: h.state.revision, value: null };
    },
  };
  const tenure = new Tenure(
    { plane, clock, timings, planner: null, log: null } as unknown as ControlOptions,
    1,
    null as never,
  );
  tenure.liveness.disconnected('b1', incarnation, { term: 1, n: 0 });
  const another = {
    ...{ id: 'b1', zone: null, addresses: {}, maxShards: null, weight: 1, labels: {} },
    storeId: 'new',
  };
  const registered = register(tenure, h.state, timings, { broker: another, incarnation: null });
  const failed = expect(registered).rejects.toThrow('not applied in time');
  await clock.advance(10_000);
  await failed;
  const beat = (of: number): Promise<unknown> => {
    const session = tenure.nextSession();
    return heartbeat(tenure, h.state, timings, { broker: 'b1', incarnation: of, session });
  };
  await expect(beat(incarnation)).rejects.toThrow('is just being registered');
  await clock.advance(20_000);
  await expect(beat(incarnation)).rejects.toThrow('is just being registered');
  isStalled = false;
  await clock.advance(20_000);
  await expect(beat(incarnation)).rejects.toMatchObject({ code: 'stale_incarnation' });
  await expect(beat(incarnation + 1)).resolves.toMatchObject({ leaseMs: timings.leaseMs });
  expect(h.state.appliedIndex).toBeLessThan(10);
});
