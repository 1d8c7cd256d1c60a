import { Packr } from 'msgpackr';
import { describe, expect, test } from 'vitest';
import type { Entry, StateMachine } from '../../raft/index.ts';
import { COMMAND_VERSION, type Command } from '../../src/command/index.ts';
import { EvenkeelError } from '../../src/errors.ts';
import { SESSION_WINDOW } from '../../src/state/index.ts';
import { NodeWorld } from '../support/node-world.ts';

const IDS = ['n1', 'n2', 'n3'];
const DEADLINE_MS = 8_000;
const UNKNOWN = ['outcome_unknown', 'deadline_exceeded'];

function create(name: string): Command {
  const shape = { shards: 1, replicationFactor: 1, durable: true, zonePolicy: null, labels: {} };
  return { type: 'createResource', resource: { kind: 'stream', name, ...shape } };
}

/** What a client is told: the revision, or the code of the error. */
async function told(w: NodeWorld, answer: Promise<{ readonly revision: number }>): Promise<number | string> {
  try {
    return (await w.settled(answer)).revision;
  } catch (error) {
    if (!(error instanceof EvenkeelError)) throw error;
    return error.code;
  }
}

describe('a request of a session, sent through several nodes', () => {
  let w: NodeWorld;
  const send = (through: string, command: Command, request: { session: number; n: number }) =>
    w.node(through).plane.propose(command, { deadlineMs: DEADLINE_MS, request });

  async function opened(): Promise<{ leader: string; first: string; other: string; session: number }> {
    w = new NodeWorld(IDS);
    await w.start(IDS);
    const leader = await w.leader();
    const [first, other] = IDS.filter((id) => id !== leader) as [string, string];
    const open = w.node(first).plane.propose({ type: 'openSession' }, { deadlineMs: DEADLINE_MS });
    const { session } = (await w.settled(open)).value as { session: number };
    return { leader, first, other, session };
  }

  test('hazard 34: the answer is lost, the leader dies, and the retry goes through another node', async () => {
    const { leader, first, other, session } = await opened();
    const request = { session, n: 1 };
    const { raft, plane } = w.node(leader);
    const { lastIndex } = raft.status();
    const answer = send(first, create('a'), request);
    answer.catch(() => undefined);
    await w.until('the proposal is in the log', () => raft.status().lastIndex > lastIndex);
    // From here on nothing of the leader reaches who asked it: neither the entry nor the answer.
    w.cut(leader, first);
    await w.until('it is applied', () => plane.state.resources.has('stream:a'));
    const { revision } = plane.state;
    w.kill(leader);
    expect(UNKNOWN).toContain(await told(w, answer));
    expect(await w.leader([first, other])).toBe(other);

    expect(await told(w, send(other, create('a'), request))).toBe(revision);
    expect(await told(w, send(first, create('a'), request))).toBe(revision);
    w.cut(leader, first, false);
    await w.start([leader]);
    expect(await told(w, send(leader, create('a'), request))).toBe(revision);
    await w.until(
      'all have applied the same',
      () => new Set(IDS.map((id) => w.node(id).plane.state.appliedIndex)).size === 1,
    );
    for (const id of IDS) expect(w.node(id).plane.state.resources.get('stream:a')?.revision).toBe(revision);
    expect(new Set(IDS.map((id) => w.node(id).plane.state.stateHash)).size).toBe(1);
  });

  test('hazard 34: the request is lost with the leader, and the retry runs it once', async () => {
    const { leader, first, other, session } = await opened();
    const request = { session, n: 1 };
    w.cut(first, leader);
    const answer = send(first, create('a'), request);
    answer.catch(() => undefined);
    await w.run(100);
    w.kill(leader);
    let retried: number | string = 'unavailable';
    while (typeof retried === 'string') {
      retried = await told(w, send(other, create('a'), request));
      if (typeof retried === 'string') await w.run(100);
    }
    expect([...UNKNOWN, retried]).toContain(await told(w, answer));
    expect(await told(w, send(first, create('a'), request))).toBe(retried);
    for (const id of [first, other]) {
      expect(w.node(id).plane.state.resources.get('stream:a')?.createdRevision).toBe(retried);
    }
  });

  test('hazard 34: one that can no longer be told from a retry says session_expired and does not run', async () => {
    const { leader, first, session } = await opened();
    for (let n = 2; n <= SESSION_WINDOW + 2; n += 1) {
      await w.settled(send(leader, create(`r${n}`), { session, n }));
    }
    const { revision } = w.node(leader).plane.state;
    expect(await told(w, send(first, create('late'), { session, n: 1 }))).toBe('session_expired');
    expect(await told(w, send(first, create('late'), { session: session + 1, n: 1 }))).toBe(
      'session_expired',
    );
    expect(w.node(leader).plane.state.revision).toBe(revision);
    expect(w.node(leader).plane.state.resources.has('stream:late')).toBe(false);
  });
});

describe('a member that meets a command of a later version', () => {
  const packr = new Packr({ useRecords: false });
  const later = new Uint8Array(
    packr.pack({
      ...{ version: COMMAND_VERSION, timeMs: 0, request: null, inTerm: null },
      command: { type: 'splitShard', shard: 'stream:s/0' },
    }),
  );

  /** A member of that later version, as far as this command goes: it has no effect there. */
  function upgraded(machine: StateMachine): StateMachine {
    const known = (entry: Entry): Entry =>
      Buffer.from(entry.data).equals(later) ? { ...entry, kind: 'noop', data: new Uint8Array(0) } : entry;
    return {
      apply: (entries: readonly Entry[]) => machine.apply(entries.map(known)),
      snapshot: () => machine.snapshot(),
      restore: (data, index) => machine.restore(data, index),
    };
  }

  test('hazard 36: stops applying and says so, again after a restart, and goes on once it is upgraded', async () => {
    const w = new NodeWorld(IDS);
    const old = 'n3';
    const rest = ['n1', 'n2'];
    await w.start(IDS, (id) => (id === old ? {} : { stateMachine: upgraded }));
    const leader = await w.leader();
    if (leader === old) {
      await w.settled(w.node(leader).raft.transferLeadership('n1', w.clockOf(leader).now() + DEADLINE_MS));
    }
    const through = await w.leader(rest);
    const { raft, plane } = w.node(through);
    const { index } = await w.settled(raft.propose(later, w.clockOf(through).now() + DEADLINE_MS));
    await w.settled(plane.propose(create('after'), { deadlineMs: DEADLINE_MS }));
    await w.until('it stops itself', () => w.fatalOf(old) !== null);
    expect(w.fatalOf(old)?.message).toMatch(/splitShard/);
    expect(w.node(old).plane.state.appliedIndex).toBe(index - 1);
    expect(w.node(old).plane.state.resources.has('stream:after')).toBe(false);

    w.kill(old);
    await w.start([old]);
    await w.until('it stops itself again', () => w.fatalOf(old) !== null);
    expect(w.node(old).plane.state.appliedIndex).toBe(index - 1);

    w.kill(old);
    await w.start([old], () => ({ stateMachine: upgraded }));
    await w.until('it catches up', () => w.node(old).plane.state.resources.has('stream:after'));
    expect(w.node(old).plane.state.stateHash).toBe(plane.state.stateHash);
  });
});
