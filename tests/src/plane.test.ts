import { describe, expect, it } from 'vitest';
import type { Command } from '../../src/command/index.ts';
import { ServerWorld, type ServerLife } from '../support/server-world.ts';

const session = (): Command => ({ type: 'openSession' });
const others = (lives: readonly ServerLife[], one: ServerLife | undefined): ServerLife[] =>
  lives.filter((life) => life !== one);

describe('cluster time', () => {
  it('rises with the leader’s clock, stands still elsewhere, and never falls over changes of leader', async () => {
    const w = new ServerWorld();
    let lives: ServerLife[] = await w.quorum();
    let last = 0;
    for (let round = 0; round < 4; round++) {
      const leader = w.leader(lives);
      if (leader === undefined) throw new Error('no leader');
      const began = leader.running.plane.clusterTimeMs();
      expect(began).toBeGreaterThanOrEqual(last);
      const still = others(lives, leader).map(
        ({ running: { plane } }) => [plane, plane.clusterTimeMs()] as const,
      );
      const applied = still.map(([plane]) => plane.state.timeMs);
      await w.advance(5_000);
      expect(leader.running.plane.clusterTimeMs() - began).toBe(5_000);
      still.forEach(([plane, before], i) => {
        if (plane.state.timeMs === applied[i]) expect(plane.clusterTimeMs()).toBe(before);
      });
      await w.outcome(leader.running.plane.propose(session(), { deadlineMs: 5_000 }));
      last = leader.running.plane.state.timeMs;
      expect(last).toBeGreaterThanOrEqual(began + 5_000);
      w.kill(leader);
      const rest = others(lives, leader);
      await w.until('another leader', () => w.leader(rest) !== undefined);
      lives = [...rest, w.begin(leader.process.host)];
      await w.until('its return', () => lives.every(({ node }) => node !== null));
    }
  });
});

describe('without a leader', () => {
  it('asks, proposals and reads end with no_leader, by their deadlines', async () => {
    const w = new ServerWorld();
    const lives = await w.quorum();
    const leader = w.leader(lives);
    if (leader === undefined) throw new Error('no leader');
    for (const other of others(lives, leader)) w.kill(other);
    const { plane } = leader.running;
    await w.until('the end of leadership', () => plane.leadership().leaderId === null);
    // Deposed, its clock counts no more.
    const stoodMs = plane.clusterTimeMs();
    await w.advance(1_000);
    expect(plane.clusterTimeMs()).toBe(stoodMs);
    const beganMs = w.world.nowMs;
    await expect(w.outcome(plane.askLeader('x', {}, 1_000))).rejects.toMatchObject({ code: 'no_leader' });
    await expect(w.outcome(plane.propose(session(), { deadlineMs: 1_000 }))).rejects.toMatchObject({
      code: 'no_leader',
    });
    await expect(w.outcome(plane.readBarrier(1_000))).rejects.toMatchObject({ code: 'no_leader' });
    expect(w.world.nowMs - beganMs).toBeLessThan(4_000);
  });
});

describe('calls between members', () => {
  it('reach the leader from any member, and a member that serves no such method says so', async () => {
    const w = new ServerWorld();
    const lives = await w.quorum();
    for (const { running } of lives)
      running.plane.serve('who', async (params) => [running.plane.nodeId, params]);
    const leader = w.leader(lives)?.process.host;
    for (const { running } of lives) {
      expect(await w.outcome(running.plane.askLeader('who', { a: 1 }, 1_000))).toEqual([leader, { a: 1 }]);
      await expect(w.outcome(running.plane.askLeader('nothing', {}, 1_000))).rejects.toMatchObject({
        code: 'unknown_method',
      });
    }
    expect(() => lives[0].running.plane.serve('who', async () => null)).toThrow('served already');
  });

  it('a follower’s proposal is applied by the leader and read behind its own barrier', async () => {
    const w = new ServerWorld();
    const lives = await w.quorum();
    const [follower] = others(lives, w.leader(lives));
    if (follower === undefined) throw new Error('no follower');
    const { plane } = follower.running;
    const proposed = await w.outcome(plane.propose(session(), { deadlineMs: 5_000 }));
    await w.outcome(plane.readBarrier(5_000));
    expect(plane.state.appliedIndex).toBeGreaterThanOrEqual(proposed.revision);
  });
});
