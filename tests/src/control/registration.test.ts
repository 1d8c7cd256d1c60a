import { expect, test } from 'vitest';
import { VirtualClock } from '../../raft/support/virtual-clock.ts';
import { Harness } from '../apply/harness.ts';
import type { Command, Proposed } from '../../../src/command/index.ts';
import { heartbeat, register } from '../../../src/control/broker-service.ts';
import { DEFAULT_BROKER_TIMINGS, type ControlOptions } from '../../../src/control/index.ts';
import { Tenure } from '../../../src/control/tenure.ts';
import { EvenkeelError } from '../../../src/errors.ts';

/** A leader whose entries are in the log at once, and applied, in order, once its disks go on. */
function stalledLeader() {
  const timings = DEFAULT_BROKER_TIMINGS;
  const clock = new VirtualClock();
  const h = new Harness();
  const { incarnation } = h.register('b1', { storeId: 'old' });
  const log: Command[] = [];
  let isStalled = true;
  let refusal: EvenkeelError | null = null;
  const plane = {
    ...{ state: h.state, feed: h.ring },
    leadership: () => ({ term: 1, leaderId: 'n1', established: true }),
    clusterTimeMs: () => clock.now(),
    confirmLeadership: () => Promise.resolve(),
    propose: async (command: Command, { deadlineMs }: { deadlineMs: number }): Promise<Proposed> => {
      if (refusal !== null) throw refusal;
      log.push(command);
      if (isStalled) {
        await new Promise<void>((resolve) => void clock.setTimeout(resolve, deadlineMs));
        throw new EvenkeelError('deadline_exceeded', 'not applied in time', { outcome: 'unknown' });
      }
      goOn();
      return { revision: h.state.revision, value: null };
    },
  };
  let applied = 0;
  const goOn = (): void => {
    isStalled = false;
    for (; applied < log.length; applied++) h.ok(log[applied] as Command);
  };
  const tenure = new Tenure(
    { plane, clock, timings, planner: null, log: null } as unknown as ControlOptions,
    1,
    null as never,
  );
  tenure.liveness.disconnected('b1', incarnation, { term: 1, n: 0 });
  const registerAs = (storeId: string | null, weight = 1, starts: number | null = null) => {
    const rest = { id: 'b1', zone: null, addresses: {}, maxShards: null, labels: {} };
    return register(tenure, h.state, timings, {
      broker: { ...rest, weight, storeId, starts },
      incarnation: null,
    });
  };
  const beat = (of: number): Promise<unknown> => {
    const session = tenure.nextSession();
    return heartbeat(tenure, h.state, timings, { broker: 'b1', incarnation: of, session });
  };
  const registrations = (): number => log.filter(({ type }) => type === 'registerBroker').length;
  const refuse = (error: EvenkeelError | null): void => void (refusal = error);
  return {
    ...{ h, clock, timings, incarnation, tenure },
    ...{ goOn, refuse, registerAs, beat, registrations },
  };
}

/** Lets a call run into its deadline. */
async function late(clock: VirtualClock, call: Promise<unknown>): Promise<void> {
  const failed = expect(call).rejects.toMatchObject({ code: 'deadline_exceeded' });
  await clock.advance(10_000);
  await failed;
}

test('a broker that asks again takes over its registration that nobody was told of: one entry, however often', async () => {
  const { clock, goOn, registerAs, beat, registrations, incarnation, timings } = stalledLeader();
  for (let n = 0; n < 5; n++) await late(clock, registerAs('new'));
  expect(registrations()).toBe(1);
  const asked = registerAs('new');
  goOn();
  await clock.advance(10_000);
  expect(await asked).toMatchObject({ incarnation: incarnation + 1 });
  expect(registrations()).toBe(1);
  await expect(beat(incarnation + 1)).resolves.toMatchObject({ leaseMs: timings.leaseMs });
  // It was told: whoever registers now is another process.
  expect(await registerAs('new')).toMatchObject({ incarnation: incarnation + 2 });
});

test('a registration that nobody was told of is there for the next one that is the same, and for no other', async () => {
  const { clock, goOn, registerAs, registrations, incarnation } = stalledLeader();
  await late(clock, registerAs('new'));
  goOn();
  await clock.advance(20_000);
  expect(await registerAs('new')).toMatchObject({ incarnation: incarnation + 1 });
  expect(registrations()).toBe(1);

  const other = stalledLeader();
  await late(other.clock, other.registerAs('new'));
  other.goOn();
  await other.clock.advance(20_000);
  expect(await other.registerAs('new', 2)).toMatchObject({ incarnation: other.incarnation + 2 });
  // What has been passed over is not taken up again.
  expect(await other.registerAs('new')).toMatchObject({ incarnation: other.incarnation + 3 });
});

test('without a store there is nothing to tell one process from another by', async () => {
  const { clock, goOn, registerAs, incarnation } = stalledLeader();
  await late(clock, registerAs(null));
  goOn();
  await clock.advance(20_000);
  await expect(registerAs(null)).rejects.toMatchObject({
    message: expect.stringContaining(`incarnation ${incarnation + 1}`),
    code: 'broker_connected',
  });
});

test('a registration of unknown outcome leaves the one before it without a lease until it is settled', async () => {
  const { h, clock, goOn, registerAs, beat, incarnation, timings } = stalledLeader();
  await late(clock, registerAs('new'));
  await expect(beat(incarnation)).rejects.toThrow('is just being registered');
  await clock.advance(20_000);
  await expect(beat(incarnation)).rejects.toThrow('is just being registered');
  goOn();
  await clock.advance(20_000);
  await expect(beat(incarnation)).rejects.toMatchObject({ code: 'stale_incarnation' });
  await expect(beat(incarnation + 1)).resolves.toMatchObject({ leaseMs: timings.leaseMs });
  expect(h.state.appliedIndex).toBeLessThan(10);
});

test.each(['down', 'left'] as const)(
  'from the moment `%s` is proposed for a broker none of its heartbeats gets a lease, and once it is applied it must register',
  async (lifecycle) => {
    const { clock, goOn, tenure, beat, incarnation, timings } = stalledLeader();
    await expect(beat(incarnation)).resolves.toMatchObject({ leaseMs: timings.leaseMs });
    const declared = tenure.declare('b1', incarnation, lifecycle);
    await expect(beat(incarnation)).rejects.toMatchObject({ code: 'unavailable' });
    await late(clock, declared);
    // It may be applied yet.
    await expect(beat(incarnation)).rejects.toMatchObject({ code: 'unavailable' });
    goOn();
    await clock.advance(20_000);
    await expect(beat(incarnation)).rejects.toMatchObject({ code: 'must_register' });
  },
);

test.each(['down', 'left'] as const)(
  'a broker whose `%s` was refused gets leases again: it never got into the log',
  async (lifecycle) => {
    const { h, refuse, tenure, beat, incarnation, timings } = stalledLeader();
    refuse(new EvenkeelError('overloaded', '16384 proposals wait already; try again later'));
    const declared = tenure.declare('b1', incarnation, lifecycle);
    await expect(declared).rejects.toMatchObject({ code: 'overloaded' });
    await expect(beat(incarnation)).resolves.toMatchObject({ leaseMs: timings.leaseMs });
    expect(h.broker('b1').lifecycle).toBe('live');
  },
);

test('a try that counts one more start takes over the one before it; an equal count is another process', async () => {
  const { h, clock, goOn, registerAs, registrations, incarnation } = stalledLeader();
  await late(clock, registerAs('new', 1, 3));
  goOn();
  await clock.advance(20_000);
  expect(await registerAs('new', 1, 4)).toMatchObject({ incarnation: incarnation + 1 });
  expect(registrations()).toBe(1);
  expect(h.broker('b1')).toMatchObject({ storeId: 'new', starts: 3 });

  const other = stalledLeader();
  await late(other.clock, other.registerAs('new', 1, 3));
  other.goOn();
  await other.clock.advance(20_000);
  await expect(other.registerAs('new', 1, 3)).rejects.toMatchObject({ code: 'broker_connected' });
});

test('an older copy of the store of a broker that is connected is refused, a newer start of it is not', async () => {
  const { goOn, registerAs, incarnation } = stalledLeader();
  goOn();
  const of = (starts: number) => registerAs('new', 1, starts);
  expect(await of(5)).toMatchObject({ incarnation: incarnation + 1 });
  for (const starts of [4, 5]) {
    await expect(of(starts)).rejects.toMatchObject({
      code: 'broker_connected',
      message: expect.stringContaining('with a newer copy of this store'),
    });
  }
  expect(await of(6)).toMatchObject({ incarnation: incarnation + 2 });
});
