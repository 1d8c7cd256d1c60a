import { beforeEach, describe, expect, it } from 'vitest';
import { MSGPACK_SUBPROTOCOL } from '../../../src/broker-protocol.ts';
import { BrokerClient, type BrokerClientOptions } from '../../../src/client/index.ts';
import type { ControlPlane } from '../../../src/control-plane.ts';
import { EvenkeelError } from '../../../src/errors.ts';
import type { Route } from '../../../src/net.ts';
import { BrokerWorld } from '../../support/broker-world.ts';
import { assign, createStream } from '../../support/placed.ts';
import { RawBroker } from '../../support/raw-broker.ts';
import { assignmentRow, brokerRow, importOf, resource } from '../apply/harness.ts';

async function world(): Promise<BrokerWorld> {
  const w = new BrokerWorld({});
  for (const id of ['n1', 'n2', 'n3']) await w.node(id);
  w.quorum.elect('n1');
  return w;
}

function client(
  w: BrokerWorld,
  id: string,
  storeId: string,
  options: Partial<Pick<BrokerClientOptions, 'endpoints' | 'random'>> = {},
) {
  const events: string[] = [];
  const process = w.process(id);
  const made = new BrokerClient({
    ...w.clientOptions(process),
    ...options,
    registration: { id, addresses: {}, storeId },
    handlers: {
      onRegistered: (incarnation, resumed) =>
        events.push(`${resumed ? 'resumed' : 'registered'} ${incarnation}`),
      onRefused: (error) => events.push(`refused ${error.code}`),
      onReplaced: () => events.push('replaced'),
    },
  });
  made.start();
  return { client: made, process, events };
}

describe('brokers and their leader', () => {
  let w: BrokerWorld;
  beforeEach(async () => {
    w = await world();
  });
  const row = (id: string) => w.quorum.machine.view.brokers.get(id);

  it('a broker registers on any node, gets a lease and keeps it', async () => {
    const { client: b1 } = client(w, 'b1', 's1');
    await w.until('it has a lease', () => b1.hasLease());
    expect(row('b1')).toMatchObject({ lifecycle: 'live', incarnation: 1, storeId: 's1' });
    let lapses = 0;
    for (let i = 0; i < 60; i++) {
      await w.run(1_000);
      if (!b1.hasLease()) lapses++;
    }
    expect(lapses).toBe(0);
    // Heartbeats never enter the log.
    expect(w.quorum.log.map(({ command }) => command.type)).toEqual(['registerBroker']);
  });

  it('leases go on while the log’s entries wait to be applied, for however long', async () => {
    const { client: b1 } = client(w, 'b1', 's1');
    await w.until('it has a lease', () => b1.hasLease());
    w.quorum.writesHeld = true;
    let lapses = 0;
    for (let i = 0; i < 300; i++) {
      await w.run(100);
      if (!b1.hasLease()) lapses++;
    }
    expect(lapses).toBe(0);
    w.quorum.release();
    expect(row('b1')).toMatchObject({ lifecycle: 'live', incarnation: 1 });
  });

  it('a broker that is heard again as its `down` is refused goes on where it was', async () => {
    const b1 = client(w, 'b1', 's1');
    await w.until('it has a lease', () => b1.client.hasLease());
    const leader = w.nodes.get('n1')?.plane as { propose: ControlPlane['propose'] };
    const propose = leader.propose.bind(leader);
    let refused = 0;
    leader.propose = (command, options) => {
      if (command.type !== 'setLifecycle' || refused > 0) return propose(command, options);
      refused++;
      b1.process.resume(true);
      return Promise.reject(new EvenkeelError('overloaded', '16384 proposals wait already; try again later'));
    };
    b1.process.stall();
    await w.until('`down` is refused', () => refused === 1);
    await w.until('it has a lease again', () => b1.client.hasLease(), 3_000);
    expect(row('b1')).toMatchObject({ lifecycle: 'live', incarnation: 1 });
  });

  it('silence ends the lease before the broker is declared down, and down asks for a new registration', async () => {
    const b1 = client(w, 'b1', 's1');
    await w.until('it has a lease', () => b1.client.hasLease());
    b1.process.stall();
    await w.until('it is down', () => row('b1')?.lifecycle === 'down');
    const silentMs = w.quorum.clusterTimeMs() - (row('b1')?.downSinceMs ?? 0);
    expect(silentMs).toBeGreaterThanOrEqual(6_500);
    expect(silentMs).toBeLessThan(6_500 + 300);
    expect(b1.client.hasLease()).toBe(false);
    b1.process.resume(true);
    await w.until('it has registered anew', () => b1.events.length === 2);
    expect(row('b1')).toMatchObject({ lifecycle: 'live', downSinceMs: null });
    expect(b1.events).toEqual(['registered 1', 'registered 2']);
  });

  it('brokers of a cluster that an import overwrites register anew, and are not taken for replaced', async () => {
    const b1 = client(w, 'b1', 's1');
    const b2 = client(w, 'b2', 's2');
    await w.until('both have leases', () => b1.client.hasLease() && b2.client.hasLease());
    // b2 is not in the file, which counts from 0 as a fresh one does.
    const stream = { ...resource('s'), replicationFactor: 1 };
    const rows = {
      brokers: [brokerRow('b1')],
      resources: [stream],
      assignments: [assignmentRow('stream:s/0', ['b1'])],
    };
    for (const command of importOf(rows, { overwrite: true })) await w.write(command);
    await w.until('both have registered anew', () => [b1, b2].every(({ events }) => events.length > 1));
    // One above the row of the file, itself one above the session that lived; b2 has no row at all.
    expect(b1.events).toEqual(['registered 1', 'registered 3']);
    expect(b2.events).toEqual(['registered 1', 'registered 2']);
    await w.run(20_000);
    expect(b1.client.hasLease() && b2.client.hasLease()).toBe(true);
    expect(row('b1')).toMatchObject({ imported: false, storeId: 's1' });
    expect(b1.client.view.assignments.get('stream:s/0')).toMatchObject({ leader: 'b1', state: 'assigning' });
  });

  it('a new leader gives every broker a full window, and a resumed session writes nothing', async () => {
    const b1 = client(w, 'b1', 's1');
    const b2 = client(w, 'b2', 's2');
    await w.until('both have leases', () => b1.client.hasLease() && b2.client.hasLease());
    b2.process.stall();
    await w.run(5_000);
    w.quorum.elect('n2');
    const electedMs = w.world.nowMs;
    await w.until('b2 is down', () => row('b2')?.lifecycle === 'down');
    expect(w.world.nowMs - electedMs).toBeGreaterThanOrEqual(6_500 - 1);
    expect(row('b1')?.lifecycle).toBe('live');
    expect(b1.client.hasLease()).toBe(true);
    expect(w.quorum.log.filter(({ command }) => command.type === 'registerBroker')).toHaveLength(2);
  });

  it("a stall of the leader's own loop is not silence of the brokers", async () => {
    const b1 = client(w, 'b1', 's1');
    await w.until('it has a lease', () => b1.client.hasLease());
    const n1 = w.nodes.get('n1')?.process;
    n1?.stall();
    await w.run(20_000);
    n1?.resume(true);
    await w.run(3_000);
    expect(row('b1')?.lifecycle).toBe('live');
    await w.until('it has a lease again', () => b1.client.hasLease());
    expect(row('b1')?.incarnation).toBe(1);
  });

  it('no lease while no quorum answers', async () => {
    const b1 = client(w, 'b1', 's1');
    await w.until('it has a lease', () => b1.client.hasLease());
    w.quorum.held = true;
    await w.run(5_100);
    expect(b1.client.hasLease()).toBe(false);
    w.quorum.release();
    await w.until('it has a lease again', () => b1.client.hasLease());
  });

  it('many heartbeats share a quorum round', async () => {
    const clients = Array.from({ length: 40 }, (_, i) => client(w, `b${i}`, `s${i}`));
    await w.until('all have leases', () => clients.every(({ client: c }) => c.hasLease()));
    w.quorum.held = true;
    await w.run(1_500);
    const before = w.quorum.rounds;
    w.quorum.release();
    await w.run(3);
    // The one that was held, and one for all that gathered meanwhile.
    expect(w.quorum.rounds - before).toBeLessThanOrEqual(3);
    expect(clients.every(({ client: c }) => c.hasLease())).toBe(true);
  });

  it('the connection breaks: the same incarnation resumes on another node without a log entry', async () => {
    const b1 = client(w, 'b1', 's1');
    await w.until('it has a lease', () => b1.client.hasLease());
    for (const id of ['n1', 'n2', 'n3']) w.network.breakConnections('b1', id);
    await w.until('it has resumed', () => b1.events.includes('resumed 1'));
    expect(w.quorum.log).toHaveLength(1);
    await w.run(3_000);
    expect(b1.client.hasLease()).toBe(true);
  });

  it('the same store registers again: a new incarnation, the old process is replaced', async () => {
    const old = client(w, 'b1', 's1');
    await w.until('it has a lease', () => old.client.hasLease());
    const young = client(w, 'b1', 's1');
    await w.until('the new one has a lease', () => young.client.hasLease());
    expect(row('b1')?.incarnation).toBe(2);
    expect(old.events).toEqual(['registered 1', 'replaced']);
    expect(old.client.hasLease()).toBe(false);
    await w.run(20_000);
    expect(old.events).toHaveLength(2);
    expect(young.client.hasLease()).toBe(true);
    expect(row('b1')).toMatchObject({ incarnation: 2, lifecycle: 'live' });
  });

  it('a resumption of its own that arrives late does not end it: it connects again', async () => {
    const b1 = client(w, 'b1', 's1');
    await w.until('it has a lease', () => b1.client.hasLease());
    const late = await RawBroker.open(w, 'n2');
    expect(await late.register('b1', {}, 1)).toMatchObject({ type: 'register.ok', incarnation: 1 });
    await w.until('it has resumed', () => b1.events.includes('resumed 1'));
    await w.run(10_000);
    expect(b1.events).toEqual(['registered 1', 'resumed 1']);
    expect(b1.client.hasLease()).toBe(true);
  });

  describe('whose first registration was never answered', () => {
    async function unanswered(): Promise<ReturnType<typeof client>> {
      const mute: Route = {
        subprotocols: [MSGPACK_SUBPROTOCOL],
        maxPayloadBytes: 1_000,
        onConnection: (connection) => {
          connection.onMessage = () => connection.close(1001, 'the node goes down');
        },
      };
      const listener = await w.network.netOf(w.process('n0')).listen('n0:1', { routes: { '/broker': mute } });
      const b1 = client(w, 'b1', 's1', { endpoints: ['n0:1', 'n1:1'], random: { nextUint32: () => 0 } });
      await w.until('it has a lease', () => b1.client.hasLease());
      await w.settled(listener.close());
      return b1;
    }
    const registerElsewhere = async (): Promise<unknown> =>
      (await RawBroker.open(w, 'n2')).register('b1', { storeId: 's1' });

    it('takes a newer incarnation for that one, once, and registers anew', async () => {
      const b1 = await unanswered();
      expect(await registerElsewhere()).toMatchObject({ incarnation: 2 });
      await w.until('it has registered anew', () => b1.events.includes('registered 3'));
      await w.until('it has a lease again', () => b1.client.hasLease());
      expect(await registerElsewhere()).toMatchObject({ incarnation: 4 });
      await w.run(10_000);
      expect(b1.events).toEqual(['registered 1', 'registered 3', 'replaced']);
    });

    it('ends where another store has the id by now: it does not ask for ever', async () => {
      const b1 = await unanswered();
      b1.process.stall();
      await w.run(8_000);
      const other = client(w, 'b1', 'other');
      await w.until('the other store is in', () => other.client.hasLease(), 10_000);
      b1.process.resume(true);
      await w.run(10_000);
      expect(b1.events.at(-1)).toBe('replaced');
      expect(other.client.hasLease()).toBe(true);
      expect(other.events).toEqual(['registered 2']);
    });

    it('takes it for another process after a minute', async () => {
      const b1 = await unanswered();
      await w.run(60_000);
      expect(await registerElsewhere()).toMatchObject({ incarnation: 2 });
      await w.run(10_000);
      expect(b1.events).toEqual(['registered 1', 'replaced']);
    });
  });

  it('another store under the id of a living session is refused until that one is gone', async () => {
    const old = client(w, 'b1', 's1');
    await w.until('it has a lease', () => old.client.hasLease());
    const stranger = client(w, 'b1', 'other');
    await w.run(10_000);
    expect(stranger.events).toContain('refused broker_connected');
    expect(old.client.hasLease()).toBe(true);
    expect(row('b1')).toMatchObject({ incarnation: 1, storeId: 's1' });
    old.client.stop();
    await w.until('the other store is in', () => row('b1')?.storeId === 'other', 10_000);
    expect(row('b1')?.incarnation).toBe(2);
  });

  it('right after an election nobody is taken for gone', async () => {
    const old = client(w, 'b1', 's1');
    await w.until('it has a lease', () => old.client.hasLease());
    w.quorum.elect('n3');
    const stranger = client(w, 'b1', 'other');
    await w.run(500);
    expect(stranger.events).toContain('refused broker_connected');
    expect(row('b1')?.storeId).toBe('s1');
  });

  it('leaves at once, or once nothing names it', async () => {
    const b1 = client(w, 'b1', 's1');
    await w.until('it has a lease', () => b1.client.hasLease());
    expect(await w.settled(b1.client.leave(true))).toBe('left');
    expect(row('b1')).toMatchObject({ lifecycle: 'left' });
    expect(b1.client.hasLease()).toBe(false);
  });

  it('drains before it leaves: draining until nothing names it, then left by itself', async () => {
    const b1 = client(w, 'b1', 's1');
    await w.until('it has a lease', () => b1.client.hasLease());
    await createStream(w, 'x', 1);
    await assign(w, 'stream:x/0', ['b1']);
    expect(await w.settled(b1.client.leave(true))).toBe('draining');
    await w.run(5_000);
    expect(row('b1')).toMatchObject({ lifecycle: 'draining', drain: true });
    await w.write({ type: 'deleteResource', kind: 'stream', name: 'x', expectedRevision: null });
    await w.until('it has left', () => row('b1')?.lifecycle === 'left');
  });
});
