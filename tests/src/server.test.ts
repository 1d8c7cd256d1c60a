import { describe, expect, it } from 'vitest';
import { ServerWorld } from '../support/server-world.ts';

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
