import { beforeEach, describe, expect, it } from 'vitest';
import { RaftError, type Clock, type Timer } from '../../../raft/index.ts';
import {
  decodeCommand,
  encodeCommand,
  Proposer,
  type Command,
  type ProposalPath,
} from '../../../src/command/index.ts';
import { MAX_LABELS_BYTES } from '../../../src/command/limits.ts';
import { EvenkeelError } from '../../../src/errors.ts';

/** Time that moves only when told; pending timers run in order. */
class ManualClock implements Clock {
  #now = 0;
  readonly #timers = new Set<{ at: number; callback: () => void }>();
  now = (): number => this.#now;
  wallNow = (): number => this.#now;
  setTimeout(callback: () => void, delayMs: number): Timer {
    const timer = { at: this.#now + delayMs, callback };
    this.#timers.add(timer);
    return timer;
  }
  clearTimeout(timer: Timer): void {
    for (const candidate of this.#timers) if (candidate === timer) this.#timers.delete(candidate);
  }
  defer(callback: () => void): void {
    queueMicrotask(callback);
  }
  get pending(): number {
    return this.#timers.size;
  }
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    for (;;) {
      await settle();
      const next = [...this.#timers].sort((a, b) => a.at - b.at)[0];
      if (next === undefined || next.at > end) break;
      this.#now = next.at;
      this.#timers.delete(next);
      next.callback();
    }
    this.#now = end;
    await settle();
  }
}

const settle = async (): Promise<void> => {
  for (let i = 0; i < 20; i++) await Promise.resolve();
};

const OPEN: Command = { type: 'openSession' };
const applied = { ok: true, revision: 7, value: { session: 7 } };

let clock: ManualClock;
let leadership: { leaderId: string | null; term: number };
let listeners: Set<() => void>;
let here: { data: Uint8Array; deadlineMs: number }[];
let there: { leaderId: string; deadlineMs: number }[];
let answerHere: () => Promise<unknown>;
let answerThere: (data: Uint8Array, deadlineMs: number) => Promise<Uint8Array>;

function proposerOf(nodeId: string, clusterTimeMs: () => number = () => 1_234.9): Proposer {
  const path: ProposalPath = {
    nodeId,
    clock,
    leadership: () => leadership,
    onLeadership(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    clusterTimeMs,
    async proposeHere(data, deadlineMs) {
      here.push({ data, deadlineMs });
      return { result: await answerHere() };
    },
    forward(leaderId, data, deadlineMs) {
      there.push({ leaderId, deadlineMs });
      return answerThere(data, deadlineMs);
    },
  };
  return new Proposer(path);
}

function lead(leaderId: string | null, term: number): void {
  leadership = { leaderId, term };
  for (const listener of [...listeners]) listener();
}

beforeEach(() => {
  clock = new ManualClock();
  leadership = { leaderId: 'n1', term: 3 };
  listeners = new Set();
  here = [];
  there = [];
  answerHere = () => Promise.resolve(applied);
  const leader = proposerOf('n1');
  answerThere = (data, deadlineMs) => leader.accept(data, deadlineMs);
});

const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'resolved',
    (error: unknown) => (error instanceof EvenkeelError ? error.code : error),
  );

describe('on the leader', () => {
  it('a command goes into the log with the leader’s time in whole ms, and its applied answer comes back', async () => {
    const request = { session: 4, n: 2 };
    await expect(proposerOf('n1').propose(OPEN, { deadlineMs: 500, request })).resolves.toEqual({
      revision: 7,
      value: { session: 7 },
    });
    const [entry] = here;
    expect(entry?.deadlineMs).toBe(500);
    expect(decodeCommand(entry?.data ?? new Uint8Array())).toEqual({
      version: 1,
      timeMs: 1_234,
      request,
      inTerm: null,
      command: OPEN,
    });
  });

  it('a refusal of applying is an error with its code and the revision', async () => {
    answerHere = () =>
      Promise.resolve({ ok: false, revision: 9, error: { code: 'conflict', message: 'read again' } });
    const error: unknown = await proposerOf('n1')
      .propose(OPEN, { deadlineMs: 500 })
      .catch((e: unknown) => e);
    expect(error).toMatchObject({ code: 'conflict', message: 'read again', data: { revision: 9 } });
  });

  it.each([
    ['overloaded', 'overloaded', undefined],
    ['tooLarge', 'limit_exceeded', undefined],
    ['deadlineExceeded', 'deadline_exceeded', 'unknown'],
    ['outcomeUnknown', 'outcome_unknown', 'unknown'],
  ] as const)('%s is told as %s, and never tried again', async (raft, code, outcome) => {
    answerHere = () => Promise.reject(new RaftError(raft, 'told so'));
    const asked = proposerOf('n1').propose(OPEN, { deadlineMs: 5_000 });
    const error: unknown = await asked.catch((e: unknown) => e);
    expect(error).toMatchObject({ code });
    expect((error as EvenkeelError).data['outcome']).toBe(outcome);
    expect(here).toHaveLength(1);
    expect(clock.pending).toBe(0);
  });

  it('what is wrong by itself is refused before any entry is made', async () => {
    const proposer = proposerOf('n1');
    const create = (over: object): Command => ({
      type: 'createResource',
      resource: {
        kind: 'stream',
        name: 's',
        shards: 1,
        replicationFactor: 1,
        durable: true,
        zonePolicy: null,
        labels: {},
        ...over,
      },
    });
    await expect(codeOf(proposer.propose(create({ name: 'a b' }), { deadlineMs: 1 }))).resolves.toBe(
      'invalid_argument',
    );
    await expect(codeOf(proposer.propose(create({ shards: 1.5 }), { deadlineMs: 1 }))).resolves.toBe(
      'invalid_argument',
    );
    const alter = (labels: Record<string, string | null>): Command => ({
      type: 'alterResource',
      kind: 'stream',
      name: 's',
      expectedRevision: null,
      labels,
    });
    for (const labels of [{ owner: 'a\nb' }, { 'o\u001b': 'a' }]) {
      const altered = proposer.propose(alter({ ...labels, gone: null }), { deadlineMs: 1 });
      await expect(codeOf(altered)).resolves.toBe('invalid_argument');
    }
    const filler = proposer.propose(alter({ filler: 'x'.repeat(MAX_LABELS_BYTES) }), { deadlineMs: 1 });
    await expect(codeOf(filler)).resolves.toBe('limit_exceeded');
    const assignments = Array.from({ length: 12_000 }, (_, i) => ({
      shard: `stream:s/${i}`,
      leader: 'b1',
      replicas: ['b1'],
      inSync: ['b1'],
      generation: 1,
      epoch: 1,
      state: 'active' as const,
      failedMoves: 0,
      move: null,
    }));
    const part: Command = {
      type: 'importPart',
      importId: 'i',
      part: 0,
      brokers: [],
      resources: [],
      assignments,
    };
    await expect(codeOf(proposer.propose(part, { deadlineMs: 1 }))).resolves.toBe('limit_exceeded');
    expect(here).toHaveLength(0);
  });
});

describe('on another member', () => {
  it('a command is passed to the leader, whose time it carries', async () => {
    // A follower's cluster time stands still.
    const asked = proposerOf('n2', () => 99).propose(OPEN, { deadlineMs: 500 });
    await expect(asked).resolves.toMatchObject({ revision: 7 });
    expect(there).toEqual([{ leaderId: 'n1', deadlineMs: 500 }]);
    expect(decodeCommand(here[0]?.data ?? new Uint8Array()).timeMs).toBe(1_234);
  });

  it('an answer that was lost is told as unknown, and nothing is sent again', async () => {
    answerThere = () => Promise.reject(new EvenkeelError('outcome_unknown', 'lost', { outcome: 'unknown' }));
    await expect(codeOf(proposerOf('n2').propose(OPEN, { deadlineMs: 500 }))).resolves.toBe(
      'outcome_unknown',
    );
    expect(there).toHaveLength(1);
  });

  it('one that could not be reached is tried again, ever more slowly, until the deadline', async () => {
    answerThere = () => Promise.reject(new EvenkeelError('unavailable', 'no socket'));
    const asked = codeOf(proposerOf('n2').propose(OPEN, { deadlineMs: 1_000 }));
    await clock.advance(1_000);
    await expect(asked).resolves.toBe('no_leader');
    expect(there.map(({ deadlineMs }) => 1_000 - deadlineMs)).toEqual([0, 50, 150, 350, 750]);
    expect(clock.pending).toBe(0);
    expect(listeners.size).toBe(0);
  });

  it('one that this member takes itself in the end carries the time of then', async () => {
    lead(null, 4);
    const asked = proposerOf('n1', () => 1_000 + clock.now()).propose(OPEN, { deadlineMs: 1_000 });
    await clock.advance(300);
    lead('n1', 5);
    await expect(asked).resolves.toMatchObject({ revision: 7 });
    expect(here.map(({ data }) => decodeCommand(data).timeMs)).toEqual([1_300]);
  });

  it('a new leader is asked as soon as it is known', async () => {
    lead(null, 4);
    const asked = proposerOf('n2').propose(OPEN, { deadlineMs: 1_000 });
    await clock.advance(300);
    expect(there).toHaveLength(0);
    lead('n1', 5);
    await expect(asked).resolves.toMatchObject({ revision: 7 });
    expect(there).toEqual([{ leaderId: 'n1', deadlineMs: 700 }]);
    expect(clock.pending).toBe(0);
  });

  it('without any leader fails by its deadline', async () => {
    lead(null, 4);
    const asked = codeOf(proposerOf('n2').propose(OPEN, { deadlineMs: 1_000 }));
    await clock.advance(999);
    await expect(Promise.race([asked, Promise.resolve('waiting')])).resolves.toBe('waiting');
    await clock.advance(1);
    await expect(asked).resolves.toBe('no_leader');
    expect(listeners.size).toBe(0);
  });
});

describe('a decision of one term', () => {
  it('is proposed by its leader only, with the term in the entry', async () => {
    await proposerOf('n1').propose(OPEN, { deadlineMs: 500, inTerm: 3 });
    expect(decodeCommand(here[0]?.data ?? new Uint8Array()).inTerm).toBe(3);
    await expect(codeOf(proposerOf('n1').propose(OPEN, { deadlineMs: 500, inTerm: 2 }))).resolves.toBe(
      'no_leader',
    );
    await expect(codeOf(proposerOf('n2').propose(OPEN, { deadlineMs: 500, inTerm: 3 }))).resolves.toBe(
      'no_leader',
    );
    expect(here).toHaveLength(1);
    expect(there).toHaveLength(0);
  });

  it('is not tried again', async () => {
    answerHere = () => Promise.reject(new RaftError('notLeader', 'deposed', 'n2'));
    await expect(codeOf(proposerOf('n1').propose(OPEN, { deadlineMs: 500, inTerm: 3 }))).resolves.toBe(
      'no_leader',
    );
    expect(here).toHaveLength(1);
  });
});

describe('what another member passes on', () => {
  const bytes = (over: object = {}) =>
    encodeCommand({ version: 1, timeMs: 0, request: null, inTerm: null, command: OPEN, ...over });

  it('is checked like any caller’s', async () => {
    const leader = proposerOf('n1');
    await expect(codeOf(leader.accept(Uint8Array.from([1, 2]), 500))).resolves.toBe('protocol_error');
    // A frame that a decoder would make a function of.
    const record = Uint8Array.from([0xd4, 0x72, 0x40, 0x91, 0xa1, 0x61, 1]);
    await expect(leader.accept(record, 500)).rejects.toThrow(/extension/);
    await expect(codeOf(leader.accept(bytes({ version: 2 }), 500))).resolves.toBe('protocol_error');
    await expect(codeOf(leader.accept(bytes({ inTerm: 3 }), 500))).resolves.toBe('protocol_error');
    const command = { type: 'abandonShard', shard: 'nonsense', expectedGeneration: null };
    await expect(codeOf(leader.accept(bytes({ command }), 500))).resolves.toBe('invalid_argument');
    const big = { type: 'removeBroker', broker: 'x'.repeat(2 ** 20), incarnation: null };
    await expect(codeOf(leader.accept(bytes({ command: big }), 500))).resolves.toBe('limit_exceeded');
    expect(here).toHaveLength(0);
  });

  it('is refused by one that does not lead', async () => {
    await expect(codeOf(proposerOf('n2').accept(bytes(), 500))).resolves.toBe('no_leader');
  });
});
