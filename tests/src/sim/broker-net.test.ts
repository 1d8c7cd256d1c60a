import { describe, expect, it } from 'vitest';
import { BROKER_PATH, brokerCodec, MSGPACK_SUBPROTOCOL } from '../../../src/broker-protocol.ts';
import type { Connection, Net } from '../../../src/net.ts';
import { brokerNet, quietLine } from '../../../src/sim/broker-net.ts';
import { SimProcess, SimWorld } from '../../../src/sim/index.ts';

const codec = brokerCodec(MSGPACK_SUBPROTOCOL);

/** A broker's connection to a node that is played here. */
async function dialled() {
  const world = new SimWorld(1);
  const process = new SimProcess(world, 'b1', { life: 1, driftPart: 0, wallOffsetMs: 0 });
  const sent: string[] = [];
  let terminated = false;
  const node: Connection = {
    subprotocol: MSGPACK_SUBPROTOCOL,
    remoteAddress: 'n1:1',
    bufferedBytes: 0,
    send: (data) => sent.push((codec.decode(data) as { type: string }).type),
    close: () => {},
    terminate: () => (terminated = true),
    onMessage: () => {},
    onClose: () => {},
  };
  const net: Net = { connect: () => Promise.resolve(node), listen: () => Promise.reject(new Error()) };
  const line = quietLine();
  const options = { path: BROKER_PATH, maxPayloadBytes: 1_000, timeoutMs: 1_000 };
  const connection = await brokerNet(net, process, line, () => {}).connect('n1:1', options);
  const heard: string[] = [];
  connection.onMessage = (data) => heard.push((codec.decode(data) as { type: string }).type);
  return {
    ...{ world, line, sent, heard },
    ask: (type: string) => connection.send(codec.encode({ id: 1, type })),
    answer: (type: string) => node.onMessage(codec.encode({ id: 1, type })),
    isTerminated: () => terminated,
  };
}

describe('brokerNet', () => {
  it('never sends what is swallowed', async () => {
    const { line, sent, ask } = await dialled();
    line.swallowed = new Set(['report', 'confirm']);
    for (const type of ['heartbeat', 'report', 'confirm', 'register']) ask(type);
    expect(sent).toEqual(['heartbeat', 'register']);
  });

  it('loses the answer to a report and all that comes after it, until the connection breaks', async () => {
    const { world, line, sent, heard, ask, answer, isTerminated } = await dialled();
    Object.assign(line, { answersToLose: 1, deafMs: 300 });
    answer('register.ok');
    ask('report');
    answer('report.ok');
    answer('watch.changes');
    expect(sent).toEqual(['report']);
    expect(heard).toEqual(['register.ok']);
    await world.run({ untilMs: 299 });
    expect(isTerminated()).toBe(false);
    await world.run({ untilMs: 301 });
    expect(isTerminated()).toBe(true);
    expect(line.answersToLose).toBe(0);
  });

  it('tells of the answers that come in', async () => {
    const { line, answer } = await dialled();
    const told: string[] = [];
    answer('register.ok');
    line.onAnswer = (type) => told.push(type);
    answer('heartbeat.ok');
    expect(told).toEqual(['heartbeat.ok']);
  });
});
