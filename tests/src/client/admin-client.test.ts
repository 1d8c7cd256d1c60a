import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AdminClient, AdminWatch, type Notification } from '../../../src/client/index.ts';
import { createSystemClock } from '../../../src/clock.ts';
import { EvenkeelError } from '../../../src/errors.ts';
import { createWebSocketNet } from '../../../src/net-ws.ts';
import type { Connection, Net } from '../../../src/net.ts';
import { AdminNode, HarnessPlane } from '../../support/admin-node.ts';

const net = createWebSocketNet();
const clock = createSystemClock();

let plane: HarnessPlane;
/** Two nodes of one state: what the first applied the second knows. */
let first: AdminNode;
let second: AdminNode;
const clients: AdminClient[] = [];

beforeEach(async () => {
  plane = new HarnessPlane();
  first = await AdminNode.start(plane);
  second = await AdminNode.start(plane);
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  await first.stop();
  await second.stop();
});

function clientOf(endpoints: readonly string[], timeoutMs = 5_000): AdminClient {
  const client = new AdminClient({ net, clock, endpoints, timeoutMs });
  clients.push(client);
  return client;
}

const both = (): string[] => [first.address, second.address];
const codeOf = async (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => 'no error',
    (error: unknown) => (error instanceof EvenkeelError ? { code: error.code, data: error.data } : error),
  );

describe('reads', () => {
  it('go on with another node when one goes', async () => {
    const client = clientOf(both());
    expect(await client.read('resource.list')).toMatchObject({
      revision: 0,
      term: 3,
      leaderId: 'n1',
      items: [],
    });
    await first.stop();
    expect(await client.read('resource.list')).toMatchObject({ items: [] });
  });

  it('are tried again while the answer is one to try again on', async () => {
    let refusals = 3;
    plane.onBarrier = async () => {
      if (refusals-- > 0) throw new EvenkeelError('no_leader', 'an election');
    };
    expect(await clientOf(both()).read('resource.list')).toMatchObject({ items: [] });
    expect(refusals).toBe(-1);
  });

  it('are tried on another node where one knows no leader', async () => {
    const cut = new HarnessPlane();
    cut.onBarrier = async () => {
      throw new EvenkeelError('no_leader', 'this one is cut off');
    };
    const alone = await AdminNode.start(cut);
    const answer = await clientOf([alone.address, second.address]).read('resource.list');
    expect(answer).toMatchObject({ items: [] });
    await alone.stop();
  });

  it('are not where it would not help', async () => {
    let asked = 0;
    plane.onBarrier = async () => void (asked += 1);
    expect(await codeOf(clientOf(both()).read('broker.show', { id: 'b1' }))).toMatchObject({
      code: 'not_found',
    });
    expect(asked).toBe(1);
  });

  it('end with the last refusal at the end of their time', async () => {
    plane.onBarrier = async () => {
      throw new EvenkeelError('no_leader', 'an election');
    };
    expect(await codeOf(clientOf(both(), 150).read('resource.list'))).toMatchObject({ code: 'no_leader' });
  });

  it('say at once that nobody is there', async () => {
    const addresses = both();
    await first.stop();
    await second.stop();
    expect(await codeOf(clientOf(addresses, 60_000).read('resource.list'))).toMatchObject({
      code: 'unreachable',
    });
  });
});

describe('writes', () => {
  const creates = (): unknown[] =>
    plane.proposed.flatMap(({ command, options }) =>
      command.type === 'createResource' ? [options.request] : [],
    );

  it('have one effect where the connection goes before the answer', async () => {
    const client = clientOf(both());
    let dropped = false;
    plane.onPropose = async (command) => {
      if (command.type !== 'createResource' || dropped) return;
      dropped = true;
      // The entry is applied; the node that would answer is gone.
      void first.stop();
      await new Promise((resolve) => setImmediate(resolve));
    };
    const answer = await client.write('resource.create', { name: 'once', shards: 1 });
    const requests = creates();
    expect(requests).toHaveLength(2);
    expect(requests[0]).toEqual(requests[1]);
    // The session's entry is the first, the resource's the second: the retry got the first answer.
    expect(answer.revision).toBe(plane.state.resources.get('stream:once')?.revision);
  });

  it('number their requests upwards in one session', async () => {
    const client = clientOf(both());
    for (const name of ['a', 'b', 'c']) await client.write('resource.create', { name, shards: 1 });
    expect(plane.proposed.filter(({ command }) => command.type === 'openSession')).toHaveLength(1);
    expect(creates()).toMatchObject([{ n: 1 }, { n: 2 }, { n: 3 }]);
  });

  it('say that the outcome is unknown where nobody knows it in time', async () => {
    const client = clientOf(both(), 300);
    plane.onPropose = async (command) => {
      if (command.type === 'createResource') throw new EvenkeelError('outcome_unknown', 'the leader went');
    };
    const error = await codeOf(client.write('resource.create', { name: 'lost', shards: 1 }));
    expect(error).toMatchObject({ code: 'deadline_exceeded', data: { outcome: 'unknown' } });
    expect(creates().length).toBeGreaterThan(1);
  });

  it('open another session where theirs was forgotten, and run once', async () => {
    const client = clientOf(both());
    await client.write('resource.create', { name: 'a', shards: 1 });
    const fresh = new HarnessPlane();
    Object.assign(plane, { harness: fresh.harness });
    await client.write('resource.create', { name: 'b', shards: 1 });
    expect([...plane.state.resources.keys()]).toEqual(['stream:b']);
  });

  it('are not repeated in another session once a try that was lost may have run', async () => {
    const client = clientOf(both());
    let ran = 0;
    plane.onPropose = async (command) => {
      if (command.type !== 'createResource') return;
      ran += 1;
      if (ran > 1) return;
      plane.harness.do(command);
      // It has run; the node that would answer is gone, and the session with it.
      Object.assign(plane, { harness: new HarnessPlane().harness });
      void first.stop();
      await new Promise((resolve) => setImmediate(resolve));
    };
    const error = await codeOf(client.write('resource.create', { name: 'once', shards: 1 }));
    expect(error).toMatchObject({ code: 'session_expired', data: { tries: 2 } });
    expect(plane.proposed.filter(({ command }) => command.type === 'openSession')).toHaveLength(1);
    expect(plane.state.resources.size).toBe(0);
  });

  it('give back what applying refused', async () => {
    const client = clientOf(both());
    await client.write('resource.create', { name: 'a', shards: 1 });
    const error = await codeOf(client.write('resource.create', { name: 'a', shards: 1 }));
    expect(error).toMatchObject({ code: 'already_exists', data: { leader: 'n1' } });
  });
});

describe('watch', () => {
  it('goes on after the last revision seen over another node, nothing twice and nothing left out', async () => {
    const seen: unknown[] = [];
    let wake = (): void => undefined;
    const watch = new AdminWatch({
      net,
      clock,
      endpoints: both(),
      fromRevision: 0,
      onNotification: ({ method, params }: Notification) => {
        if (method === 'watch.changes') seen.push(params['revision']);
        wake();
      },
    });
    const until = async (count: number): Promise<void> => {
      while (seen.length < count) await new Promise<void>((resolve) => (wake = resolve));
    };
    const running = watch.run();
    plane.harness.create('a');
    await until(1);
    await first.stop();
    plane.harness.create('b');
    plane.harness.create('c');
    await until(3);
    expect(seen).toEqual([1, 2, 3]);
    watch.stop();
    await running;
  });

  it('begins a revision again of which a lost connection brought only a part', async () => {
    const asked: unknown[] = [];
    let wake = (): void => undefined;
    const scripted: Net = {
      listen: () => Promise.reject(new Error('nobody listens')),
      connect: async () => {
        const connection: Connection = {
          subprotocol: '',
          remoteAddress: 'n1:1',
          bufferedBytes: 0,
          send(text) {
            const { id, params } = JSON.parse(String(text)) as {
              id: number;
              params: { fromRevision?: number };
            };
            asked.push(params.fromRevision);
            const say = (message: object): void =>
              connection.onMessage(JSON.stringify({ jsonrpc: '2.0', ...message }));
            queueMicrotask(() => {
              say({ id, result: { revision: 5, term: 1, leaderId: 'n1', watchId: 1 } });
              if (asked.length > 1) return wake();
              say({ method: 'watch.changes', params: { watchId: 1, revision: 6, changes: [] } });
              say({ method: 'watch.changes', params: { watchId: 1, revision: 7, changes: [], more: true } });
              connection.onClose(1006, '');
            });
          },
          close: () => undefined,
          terminate: () => undefined,
          onMessage: () => undefined,
          onClose: () => undefined,
        };
        return connection;
      },
    };
    const second = new Promise<void>((resolve) => (wake = resolve));
    const watch = new AdminWatch({
      net: scripted,
      clock,
      endpoints: ['n1:1'],
      onNotification: () => undefined,
    });
    const running = watch.run();
    await second;
    expect(asked).toEqual([undefined, 6]);
    watch.stop();
    await running;
  });

  it('ends with what no node would answer otherwise, and where nobody is there', async () => {
    const addresses = both();
    const options = { net, clock, onNotification: () => undefined };
    plane.onBarrier = async () => {
      throw new EvenkeelError('refused', 'no');
    };
    expect(await codeOf(new AdminWatch({ ...options, endpoints: addresses }).run())).toMatchObject({
      code: 'refused',
    });
    await first.stop();
    await second.stop();
    expect(await codeOf(new AdminWatch({ ...options, endpoints: addresses }).run())).toMatchObject({
      code: 'unreachable',
    });
  });
});
