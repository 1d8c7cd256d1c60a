import { afterEach, describe, expect, test } from 'vitest';
import type { RaftLimits } from '../../raft/index.ts';
import { bytes, HeldStorage, NodeCluster } from './support/node-cluster.ts';

let cluster: NodeCluster;

async function started(
  ids: string[],
  limits: Partial<RaftLimits> = {},
): Promise<{ leader: string; others: string[] }> {
  cluster = await NodeCluster.start(ids, limits);
  const leader = await cluster.leader();
  return { leader, others: ids.filter((id) => id !== leader) };
}

const three = (limits: Partial<RaftLimits> = {}) => started(['a', 'b', 'c'], limits);

function propose(id: string, text: string, timeoutMs = 2_000) {
  const answer = cluster.node(id).propose(bytes(text), cluster.clock.now() + timeoutMs);
  answer.catch(() => undefined);
  return answer;
}

function read(id: string, timeoutMs = 2_000) {
  const answer = cluster.node(id).readBarrier(cluster.clock.now() + timeoutMs);
  answer.catch(() => undefined);
  return answer;
}

/** What has become of a promise by now. */
async function outcome(promise: Promise<unknown>): Promise<unknown> {
  let answer: unknown = 'open';
  promise.then(
    (value) => (answer = value),
    (error: { code: string }) => (answer = error.code),
  );
  await cluster.clock.settle();
  return answer;
}

afterEach(() => cluster.stop());

describe('hazards of the node loop', () => {
  test('hazard 3: a leader cut from its peers answers no read for three election time-outs', async () => {
    const { leader, others } = await three();
    cluster.isolate(leader);
    const answers = [];
    for (let passed = 0; passed < 3_000; passed += 100) {
      answers.push(read(leader, 10_000));
      await cluster.clock.advance(100);
    }
    const next = await cluster.leader(others);
    const { index } = await Promise.all([propose(next, 'newer'), cluster.clock.advance(50)]).then(
      ([applied]) => applied,
    );
    for (const answer of answers) expect(await outcome(answer)).toBe('open');
    cluster.heal();
    await cluster.clock.advance(1_000);
    for (const answer of answers) expect(await outcome(answer)).toBeGreaterThanOrEqual(index);
  });

  test('hazard 4: a leader stopped for three time-outs steps down before it answers what waits in its socket', async () => {
    const { leader, others } = await three();
    // The others cannot replace it, and no message tells it of a new term: its own clock must.
    cluster.cut(others[0]!, others[1]!);
    const term = cluster.node(leader).status().term;
    cluster.freeze(leader);
    cluster.clock.jump(3_000);
    const late = [read(leader), propose(leader, 'x')];
    cluster.thaw(leader);
    await cluster.clock.settle();
    expect(cluster.node(leader).status()).toMatchObject({ role: 'follower', term });
    expect(await outcome(late[0]!)).toBe('open');
    expect(await outcome(late[1]!)).toBe('notLeader');
  });

  test('hazard 4: stopped, replaced and continued: the read sees what the new leader committed meanwhile', async () => {
    const { leader, others } = await three();
    const early = read(leader, 20_000);
    cluster.freeze(leader);
    const next = await cluster.leader(others);
    const write = propose(next, 'newer');
    await cluster.clock.advance(100);
    const { index } = await write;
    expect(await outcome(early)).toBe('open');
    const late = read(leader, 20_000);
    cluster.thaw(leader);
    await cluster.clock.advance(2_000);
    expect(await outcome(late)).toBeGreaterThanOrEqual(index);
    expect(cluster.of(leader).machine.items).toEqual(cluster.of(next).machine.items);
  });

  test('a stalled follower takes in what waits in its sockets before it counts the time it missed', async () => {
    const { leader, others } = await three();
    const [stalled] = others as [string];
    const term = cluster.node(leader).status().term;
    let preVotes = 0;
    cluster.filter = (message) => {
      if (message.type === 'preVote') preVotes += 1;
      return true;
    };
    for (let time = 0; time < 5; time++) {
      cluster.freeze(stalled);
      await cluster.clock.advance(5_000);
      cluster.thaw(stalled);
      await cluster.clock.advance(150);
    }
    expect(preVotes).toBe(0);
    expect(cluster.node(stalled).status()).toMatchObject({ role: 'follower', term, leaderId: leader });
  });

  test('hazard 5: a restarted member with 1,000 entries to replay reads nothing before one contact with a leader', async () => {
    const { leader } = await three({ maxApplyEntries: 64 });
    const writes = Array.from({ length: 1_000 }, (_, at) => propose(leader, `x${at}`));
    await cluster.clock.advance(500);
    await Promise.all(writes);
    const disks = new Map<string, HeldStorage>();
    for (const id of ['a', 'b', 'c']) disks.set(id, await cluster.kill(id));
    await cluster.boot(leader, disks.get(leader)!);
    const answer = read(leader, 1_500);
    await cluster.clock.advance(1_400);
    expect(cluster.node(leader).status().caughtUp).toBe(false);
    expect(await outcome(answer)).toBe('open');
    await cluster.clock.advance(200);
    expect(await outcome(answer)).toBe('deadlineExceeded');
    for (const id of ['a', 'b', 'c']) if (id !== leader) await cluster.boot(id, disks.get(id)!);
    await cluster.leader();
    await cluster.clock.advance(500);
    expect(cluster.node(leader).status().caughtUp).toBe(true);
    expect(cluster.of(leader).machine.items.filter((item) => item.includes(' x'))).toHaveLength(1_000);
    expect(cluster.of(leader).machine.largestSlice).toBeLessThanOrEqual(64);
  });

  test("hazard 5: a wiped member measures itself by the leader's commit, not by its own empty log", async () => {
    const { leader, others } = await three();
    const writes = Array.from({ length: 50 }, (_, at) => propose(leader, `x${at}`));
    await cluster.clock.advance(200);
    const last = (await Promise.all(writes)).at(-1)!.index;
    const [wiped] = others as [string];
    await cluster.kill(wiped);
    cluster.filter = (message) =>
      message.to !== wiped || message.type !== 'append' || message.entries.length === 0;
    await cluster.boot(wiped, new HeldStorage());
    await cluster.clock.advance(500);
    expect(cluster.node(wiped).status()).toMatchObject({ leaderId: leader, caughtUp: false });
    cluster.filter = () => true;
    await cluster.clock.advance(500);
    expect(cluster.node(wiped).status().caughtUp).toBe(true);
    expect(cluster.node(wiped).status().appliedIndex).toBeGreaterThanOrEqual(last);
  });

  test('hazard 16: a proposal whose entry is replaced is told that it was not committed', async () => {
    const { leader, others } = await three();
    cluster.isolate(leader);
    const lost = propose(leader, 'lost', 30_000);
    await cluster.clock.advance(50);
    const next = await cluster.leader(others);
    const kept = propose(next, 'kept');
    await cluster.clock.advance(100);
    await kept;
    expect(await outcome(lost)).toBe('open');
    cluster.heal();
    await cluster.clock.advance(1_000);
    expect(await outcome(lost)).toBe('notCommitted');
    expect(cluster.of(leader).machine.items.some((item) => item.includes('lost'))).toBe(false);
  });

  test('hazard 20: with its write held a single voter answers nothing, and what arrives meanwhile is one write', async () => {
    await started(['a']);
    const { storage } = cluster.of('a');
    storage.held = true;
    const answers = [propose('a', 'x')];
    await cluster.clock.advance(50);
    const before = storage.writes;
    for (let at = 0; at < 100; at++) answers.push(propose('a', `y${at}`));
    await cluster.clock.advance(500);
    expect(storage.writes).toBe(before);
    expect(await outcome(answers[0]!)).toBe('open');
    storage.release();
    await cluster.clock.advance(50);
    for (const answer of answers) expect(await outcome(answer)).toMatchObject({ term: 1 });
    expect(storage.writes).toBe(before + 1);
  });

  test('hazard 28: with every TimeoutNow lost, writes resume within an election time-out', async () => {
    const { leader, others } = await three();
    cluster.filter = (message) => message.type !== 'timeoutNow';
    const handover = cluster.node(leader).transferLeadership(others[0]!, cluster.clock.now() + 5_000);
    handover.catch(() => undefined);
    await cluster.clock.advance(50);
    const write = propose(leader, 'x');
    await cluster.clock.advance(500);
    expect(await outcome(write)).toBe('open');
    await cluster.clock.advance(600);
    expect(await outcome(handover)).toBe('refused');
    expect(await outcome(write)).toMatchObject({ result: 'applied x' });
  });

  test('hazard 28: a transfer moves the leadership; writes that waited are told who leads', async () => {
    const { leader, others } = await three();
    const target = others[1]!;
    const handover = cluster.node(leader).transferLeadership(target, cluster.clock.now() + 1_000);
    const write = propose(leader, 'x');
    await cluster.clock.advance(100);
    expect(await outcome(handover)).toBeUndefined();
    expect(cluster.node(target).status().role).toBe('leader');
    await expect(write).rejects.toMatchObject({ code: 'notLeader' });
  });

  test('hazard 28: to itself, to a stranger, twice, from a follower: refused', async () => {
    const { leader, others } = await three();
    const transfer = (from: string, to: string) =>
      outcome(cluster.node(from).transferLeadership(to, cluster.clock.now() + 1_000));
    expect(await transfer(leader, leader)).toBe('refused');
    expect(await transfer(leader, 'z')).toBe('refused');
    expect(await transfer(others[0]!, others[1]!)).toBe('notLeader');
    cluster.filter = (message) => message.type !== 'timeoutNow';
    cluster
      .node(leader)
      .transferLeadership(others[0]!, cluster.clock.now() + 100)
      .catch(() => undefined);
    expect(await transfer(leader, others[1]!)).toBe('refused');
  });

  test('hazard 35: without a quorum writes fail by their deadline, the log stays bounded and nothing is proposed again', async () => {
    const limits = {
      maxUncommittedBytes: 1_000,
      maxEntryBytes: 100,
      maxAppendBytes: 500,
      maxInflightBytes: 500,
    };
    const { leader, others } = await three(limits);
    cluster.filter = (message) => message.type !== 'append';
    const answers = Array.from({ length: 30 }, () => propose(leader, 'x'.repeat(90), 400));
    await cluster.clock.advance(50);
    const outcomes = await Promise.all(answers.map(outcome));
    expect(outcomes.filter((each) => each === 'overloaded')).toHaveLength(19);
    const last = cluster.node(leader).status().lastIndex;
    await cluster.clock.advance(500);
    for (const answer of answers) expect(['overloaded', 'deadlineExceeded']).toContain(await outcome(answer));
    expect(cluster.node(leader).status()).toMatchObject({ lastIndex: last, pendingProposals: 0 });
    cluster.filter = () => true;
    await cluster.leader();
    await cluster.clock.advance(1_500);
    const copies = cluster.of(others[0]!).machine.items.filter((item) => item.includes('xxx'));
    expect(copies.length).toBeLessThanOrEqual(11);
  });

  test('hazard 35: limits on one entry and on waiting proposals', async () => {
    const { leader } = await three({ maxEntryBytes: 10, maxPendingProposals: 3 });
    expect(await outcome(propose(leader, 'x'.repeat(11)))).toBe('tooLarge');
    const answers = [1, 2, 3, 4].map((at) => propose(leader, `x${at}`));
    expect(await outcome(answers[3]!)).toBe('overloaded');
    await cluster.clock.advance(50);
    expect(await outcome(answers[2]!)).toMatchObject({ result: 'applied x3' });
  });
});

describe('what stops a node', () => {
  test('hazard 31: the first failed write is the last: nothing is answered after it', async () => {
    const { leader, others } = await three();
    const faults: Error[] = [];
    cluster.node(leader).onFatal((error) => faults.push(error));
    cluster.of(leader).storage.failing = true;
    const write = propose(leader, 'x');
    await cluster.clock.advance(50);
    expect(faults.map((error) => error.message)).toEqual(['the disk is gone']);
    expect(await outcome(write)).toBe('outcomeUnknown');
    cluster.of(leader).storage.failing = false;
    const { writes } = cluster.of(leader).storage;
    expect(await outcome(propose(leader, 'y'))).toBe('stopped');
    expect(await outcome(read(leader))).toBe('stopped');
    await cluster.clock.advance(3_000);
    expect(cluster.of(leader).storage.writes).toBe(writes);
    expect(others).toContain(await cluster.leader(others));
  });

  test('a state machine that throws stops its node', async () => {
    const { leader, others } = await three();
    const faults: Error[] = [];
    cluster.node(others[0]!).onFatal((error) => faults.push(error));
    cluster.of(others[0]!).machine.failAt = cluster.node(leader).status().lastIndex + 1;
    const write = propose(leader, 'x');
    await cluster.clock.advance(200);
    expect(await outcome(write)).toMatchObject({ result: 'applied x' });
    expect(faults).toHaveLength(1);
    expect(await outcome(read(others[0]!))).toBe('stopped');
  });
});

describe('compaction', () => {
  test('hazard 26: a snapshot every so many entries, at what is applied; a restart begins there', async () => {
    const { leader } = await three({ snapshotEveryEntries: 20, trailingEntries: 5, maxApplyEntries: 8 });
    for (let round = 0; round < 10; round++) {
      const writes = Array.from({ length: 10 }, (_, at) => propose(leader, `x${round}.${at}`));
      await cluster.clock.advance(60);
      await Promise.all(writes);
    }
    const { snapshotIndex, appliedIndex } = cluster.node(leader).status();
    expect(snapshotIndex).toBeGreaterThan(appliedIndex - 30);
    const items = cluster.of(leader).machine.items;
    const storage = await cluster.kill(leader);
    await cluster.boot(leader, storage);
    expect(cluster.of(leader).machine.items.length).toBeGreaterThanOrEqual(snapshotIndex);
    await cluster.clock.advance(4_000);
    expect(cluster.of(leader).machine.items.slice(0, items.length)).toEqual(items);
  });

  test('snapshotNow answers once the snapshot is on disk; an empty member catches up by it', async () => {
    const { leader, others } = await three({ trailingEntries: 0 });
    await cluster.kill(others[0]!);
    const writes = Array.from({ length: 10 }, (_, at) => propose(leader, `x${at}`));
    await cluster.clock.advance(100);
    await Promise.all(writes);
    const taken = cluster.node(leader).snapshotNow();
    await cluster.clock.advance(50);
    expect(await taken).toBe(cluster.node(leader).status().appliedIndex);
    await cluster.boot(others[0]!, new HeldStorage());
    await cluster.clock.advance(1_000);
    expect(cluster.node(others[0]!).status().snapshotIndex).toBe(await taken);
    expect(cluster.of(others[0]!).machine.items).toEqual(cluster.of(leader).machine.items);
  });

  test('a snapshot in parts holds what was applied when it began; what is applied meanwhile stays in the log', async () => {
    const { leader } = await three({ trailingEntries: 0 });
    const fill = Array.from({ length: 40 }, (_, at) => propose(leader, `before${at}`));
    await cluster.clock.advance(100);
    await Promise.all(fill);
    const { machine, storage } = cluster.of(leader);
    const before = machine.items.slice();
    const taken = cluster.node(leader).snapshotNow();
    const during = Array.from({ length: 40 }, (_, at) => propose(leader, `during${at}`));
    await cluster.clock.advance(100);
    await Promise.all(during);
    expect(machine.partsTaken).toBeGreaterThan(10);
    expect(await taken).toBe(before.length);
    const { snapshot, entries } = await storage.load();
    expect(snapshot?.meta.index).toBe(before.length);
    expect(JSON.parse(new TextDecoder().decode(snapshot?.data))).toEqual(before);
    expect(entries[0]?.index).toBe(before.length + 1);
    expect(entries.length).toBeGreaterThanOrEqual(40);
  });

  test('a snapshot that is asked for while one is being taken is taken after it', async () => {
    const { leader } = await three({ trailingEntries: 0 });
    const fill = Array.from({ length: 40 }, (_, at) => propose(leader, `x${at}`));
    await cluster.clock.advance(100);
    await Promise.all(fill);
    const first = cluster.node(leader).snapshotNow();
    await cluster.clock.settle();
    const more = propose(leader, 'more');
    await cluster.clock.advance(20);
    const { index } = await more;
    const second = cluster.node(leader).snapshotNow();
    await cluster.clock.advance(50);
    expect(await first).toBeLessThan(index);
    expect(await second).toBeGreaterThanOrEqual(index);
  });
});
