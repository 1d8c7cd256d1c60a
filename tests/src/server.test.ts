import { describe, expect, it } from 'vitest';
import { ServerWorld, type ServerLife } from '../support/server-world.ts';

describe('startNode', () => {
  it('leaves nothing open where it cannot start', async () => {
    const w = new ServerWorld();
    const blocker = w.begin('n1', { dataDir: 'other' });
    await w.advance(1_000);
    const second = w.begin('n1');
    await w.until('the refusal', () => second.refused !== null);
    expect(second.refused).toMatchObject({ code: 'address_in_use' });
    w.kill(blocker);
    // The directory's lock was given back: a third start takes it.
    const third = w.begin('n1', {}, ['n1']);
    await w.until('a leader', () => third.node?.plane.leadership().established === true);
  });

  it('a second node on the same directory is refused', async () => {
    const w = new ServerWorld();
    w.begin('n1');
    await w.advance(1_000);
    const second = w.begin('n1', { listen: 'n1:7402', peerListen: 'n1:7502' });
    await w.until('the refusal', () => second.refused !== null);
    expect(second.refused).toMatchObject({ code: 'directory_in_use' });
  });

  it('hands its leadership over when it is told to stop, so that writes go on at once', async () => {
    const w = new ServerWorld();
    const lives = await w.quorum();
    const leader = w.leader(lives);
    if (leader === undefined) throw new Error('no leader');
    const { term } = leader.running.plane.leadership();
    const rest = lives.filter((life) => life !== leader);
    const beganMs = w.world.nowMs;
    const stopped = leader.running.stop();
    await w.until('another leader', () => w.leader(rest) !== undefined);
    // No election time-out passed: it was handed over, not found missing.
    expect(w.world.nowMs - beganMs).toBeLessThan(1_000);
    expect(w.leader(rest)?.running.plane.leadership().term).toBe(term + 1);
    await w.outcome(stopped);
    expect(leader.logged.some((line) => line.startsWith('handed the leadership over'))).toBe(true);
  });

  it('hands it to the next best where the best does not take over', async () => {
    const w = new ServerWorld();
    const lives = await w.quorum();
    const leader = w.leader(lives);
    if (leader === undefined) throw new Error('no leader');
    const [first, second] = lives.filter((life) => life !== leader);
    if (first === undefined || second === undefined) throw new Error('no quorum');
    // What it hears of neither tells the two apart, so that the first by its id is tried first: it hears nothing.
    w.network.setCut(leader.process.host, first.process.host, true);
    const { term } = leader.running.plane.leadership();
    await w.outcome(leader.running.stop());
    const said = leader.logged.map((line) => line.split(' {')[0] ?? '');
    expect(said.filter((line) => line.includes('hand'))).toEqual([
      'could not hand the leadership over',
      'handed the leadership over',
    ]);
    await w.until('another leader', () => w.leader([second]) !== undefined);
    expect(second.running.plane.leadership().term).toBe(term + 1);
  });

  it('stops itself at the first failed write, says so, and the others go on', async () => {
    const w = new ServerWorld();
    const lives = await w.quorum();
    const leader = w.leader(lives);
    if (leader === undefined) throw new Error('no leader');
    w.disk(leader.process.host).failNextWrite();
    const doomed = leader.running.plane.propose({ type: 'openSession' }, { deadlineMs: 1_000 });
    doomed.catch(() => {});
    await w.until('the end of the node', () => leader.fatal !== null);
    expect(leader.logged.some((line) => line.startsWith('the node stops itself'))).toBe(true);
    w.kill(leader);
    const rest = lives.filter((life) => life !== leader);
    await w.until('another leader', () => w.leader(rest) !== undefined);
  });
});

describe('raft.snapshot', () => {
  it('is on the disk of the member asked, through any node, and a restart begins there', async () => {
    const w = new ServerWorld();
    const lives = await w.quorum();
    const leader = w.leader(lives);
    const [asked, through] = lives.filter((life) => life !== leader);
    if (leader === undefined || asked === undefined || through === undefined) throw new Error('no quorum');
    for (let n = 0; n < 5; n++) {
      await w.outcome(leader.running.plane.propose({ type: 'openSession' }, { deadlineMs: 1_000 }));
    }
    const { appliedIndex } = leader.running.plane.state;
    await w.until('all applied', () =>
      lives.every(({ running }) => running.plane.state.appliedIndex >= appliedIndex),
    );
    const id = asked.process.host;
    const answer = await w.outcome(through.running.plane.askMember(id, 'raft.snapshot', {}, 5_000));
    expect(answer).toEqual({ id, index: asked.running.raft.status().snapshotIndex });
    expect(asked.running.raft.status().snapshotIndex).toBeGreaterThanOrEqual(appliedIndex);
    expect(through.running.raft.status().snapshotIndex).toBe(0);
    w.kill(asked);
    const again = w.begin(id);
    await w.until('it runs again', () => again.node !== null);
    expect(again.running.raft.status().snapshotIndex).toBeGreaterThanOrEqual(appliedIndex);
  });
});

describe('raft.transfer', () => {
  const DEADLINE_MS = 5_000;

  /** A quorum; its leader, the two others, and what asking any of them for a transfer answers. */
  async function three() {
    const w = new ServerWorld();
    const lives = await w.quorum();
    const leader = w.leader(lives);
    const [a, b] = lives.filter((life) => life !== leader);
    if (leader === undefined || a === undefined || b === undefined) throw new Error('no quorum');
    await w.until('one view', () =>
      lives.every(({ node }) => node?.plane.leadership().leaderId === host(leader)),
    );
    const ask = (at: ServerLife, to: string | null, deadlineMs = DEADLINE_MS): Promise<unknown> =>
      at.running.plane.askLeader('raft.transfer', { to, deadlineMs }, DEADLINE_MS);
    return { w, leader, a, b, ask };
  }
  const host = (life: ServerLife): string => life.process.host;

  it('asked of any node, hands the leadership to the voter named within an election time-out', async () => {
    const { w, leader, a, b, ask } = await three();
    const { term } = leader.running.plane.leadership();
    const beganMs = w.world.nowMs;
    const answer = await w.outcome(ask(a, host(b)));
    expect(answer).toEqual({ from: host(leader), to: host(b), term: term + 1 });
    expect(w.world.nowMs - beganMs).toBeLessThan(1_000);
    await w.until('it leads', () => w.leader([b]) !== undefined);
  });

  it('without a name, goes to the voter that has the most of the log', async () => {
    const { w, leader, a, b, ask } = await three();
    w.network.setCut(host(leader), host(a), true);
    await w.outcome(leader.running.plane.propose({ type: 'openSession' }, { deadlineMs: 1_000 }));
    await w.until(
      'b has it',
      () => b.running.plane.state.appliedIndex === leader.running.plane.state.appliedIndex,
    );
    w.network.setCut(host(leader), host(a), false);
    expect(await w.outcome(ask(b, null))).toMatchObject({ to: host(b) });
  });

  it('hazard 28: to a voter that hears nothing is refused, and writes that waited go through', async () => {
    const { w, leader, a, b, ask } = await three();
    w.network.setCut(host(leader), host(a), true);
    const { term } = leader.running.plane.leadership();
    const asked = ask(b, host(a));
    asked.catch(() => undefined);
    await w.advance(100);
    const write = b.running.plane.propose({ type: 'openSession' }, { deadlineMs: 5_000 });
    const second = ask(b, host(b));
    await expect(w.outcome(second)).rejects.toMatchObject({
      code: 'refused',
      message: expect.stringMatching(`a transfer to ${host(a)} is under way`),
    });
    await expect(w.outcome(asked)).rejects.toMatchObject({
      code: 'refused',
      message: `${host(a)} did not take over within an election time-out: the leader has not changed`,
    });
    await w.outcome(write);
    expect(leader.running.plane.leadership()).toMatchObject({ term, established: true });
  });

  it('ends with the deadline where that is shorter, and writes go through', async () => {
    const { w, leader, a, b, ask } = await three();
    w.network.setCut(host(leader), host(a), true);
    await expect(w.outcome(ask(b, host(a), 200))).rejects.toMatchObject({ code: 'deadline_exceeded' });
    const beganMs = w.world.nowMs;
    await w.outcome(leader.running.plane.propose({ type: 'openSession' }, { deadlineMs: 5_000 }));
    expect(w.world.nowMs - beganMs).toBeLessThan(500);
  });

  it('says why not: a stranger, itself, one that is gone', async () => {
    const { w, leader, a, b, ask } = await three();
    await expect(w.outcome(ask(a, 'n9'))).rejects.toMatchObject({
      code: 'not_found',
      message: 'no member "n9"; the members are n1, n2, n3',
    });
    await expect(w.outcome(ask(a, host(leader)))).rejects.toMatchObject({
      code: 'refused',
      message: `${host(leader)} leads already`,
    });
    w.kill(a);
    await w.advance(1_000);
    await expect(w.outcome(ask(b, host(a)))).rejects.toMatchObject({
      code: 'refused',
      message: expect.stringMatching(`${host(a)} is not connected`),
    });
  });

  it('without a quorum is answered no_leader', async () => {
    const { w, leader, a, b, ask } = await three();
    w.kill(a);
    w.kill(b);
    await w.until('the end of leadership', () => leader.running.plane.leadership().leaderId === null);
    await expect(w.outcome(ask(leader, host(a)))).rejects.toMatchObject({ code: 'no_leader' });
  });
});
