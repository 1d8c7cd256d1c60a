import { findGroup } from '../../src/bootstrap.ts';
import { createSystemClock } from '../../src/clock.ts';
import type { Disk } from '../../src/disk.ts';
import { describe, expect, it } from 'vitest';
import { ServerWorld } from '../support/server-world.ts';

const GROUP = 'data/group.json';

async function groupOf(
  w: ServerWorld,
  id: string,
): Promise<{ members: { id: string; directoryId: string }[] } | null> {
  const bytes = await w.outcome(w.disk(id).diskOf(w.process(id)).readFile(GROUP));
  return bytes === null ? null : JSON.parse(Buffer.from(bytes).toString('utf8'));
}

describe('forming a group', () => {
  it('waits for every member of --members, a majority of empty ones is not enough', async () => {
    const w = new ServerWorld();
    const [n1, n2] = [w.begin('n1'), w.begin('n2')];
    await w.advance(30_000);
    expect([n1.node, n2.node, n1.refused, n2.refused]).toEqual([null, null, null, null]);
    expect(await groupOf(w, 'n1')).toBeNull();
    // Each reason once.
    const waits = n1.logged.filter((line) => line.startsWith('waiting for n3:'));
    expect(waits.length).toBeGreaterThan(0);
    expect(new Set(waits).size).toBe(waits.length);
    const n3 = w.begin('n3');
    await w.until('a leader', () => w.leader([n1, n2, n3]) !== undefined);
    const groups = [await groupOf(w, 'n1'), await groupOf(w, 'n2'), await groupOf(w, 'n3')];
    expect(groups[0]?.members.map(({ id }) => id)).toEqual(['n1', 'n2', 'n3']);
    expect(new Set(groups[0]?.members.map(({ directoryId }) => directoryId)).size).toBe(3);
    expect(groups[1]).toEqual(groups[0]);
    expect(groups[2]).toEqual(groups[0]);
  });

  it('goes on where a member was killed between its identity and the group', async () => {
    const w = new ServerWorld();
    const early = w.begin('n1');
    await w.advance(5_000);
    w.kill(early);
    const lives = await w.quorum();
    expect(lives.map(({ refused }) => refused)).toEqual([null, null, null]);
  });

  it('lets a member in that was killed when the others had the group and it did not', async () => {
    const w = new ServerWorld();
    const [n1, n2, n3] = [w.begin('n1'), w.begin('n2'), w.begin('n3')];
    let founded = false;
    const look = (): void => void groupFile(w, 'n1').then((there) => (founded ||= there));
    await w.until('the first group file', () => (look(), founded));
    for (const life of [n2, n3]) w.kill(life);
    await w.advance(1_000);
    const again = [n1, w.begin('n2'), w.begin('n3')];
    await w.until('a leader', () => w.leader(again) !== undefined);
    expect(again.map(({ refused }) => refused)).toEqual([null, null, null]);
  });

  it('refuses a member that lost its volume, whatever the others do', async () => {
    const w = new ServerWorld();
    const [, , n3] = await w.quorum();
    w.kill(n3);
    w.disk('n3').wipe();
    const returned = w.begin('n3');
    await w.until('the refusal', () => returned.refused !== null);
    expect(returned.refused).toMatchObject({ code: 'wrong_directory' });
    expect(String(returned.refused)).toMatch(/n3 is known by data directory .* must not vote/);
    expect(await groupOf(w, 'n3')).toBeNull();
  });

  it('refuses one that is told to join nothing; one that no member knows waits, and says why', async () => {
    const w = new ServerWorld();
    await w.quorum();
    const stranger = w.begin('n4', {}, ['n1', 'n4']);
    const existing = w.begin('n5', { initialClusterState: 'existing' }, ['n5']);
    await w.until('the refusal', () => existing.refused !== null);
    expect(existing.refused).toMatchObject({ code: 'wrong_directory' });
    expect(String(existing.refused)).toContain('--initial-cluster-state new');
    await w.advance(5_000);
    expect(stranger.node).toBeNull();
    expect(stranger.logged.join('\n')).toContain('n4 is no member this node knows of');
    expect(await groupOf(w, 'n4')).toBeNull();
  });

  it('keeps the group over restarts, whatever --members and the flag say', async () => {
    const w = new ServerWorld();
    const lives = await w.quorum();
    const before = await groupOf(w, 'n1');
    for (const life of lives) w.kill(life);
    const again = ['n1', 'n2', 'n3'].map((id) => w.begin(id, { initialClusterState: 'existing' }, [id]));
    await w.until('a leader', () => w.leader(again) !== undefined);
    expect(await groupOf(w, 'n1')).toEqual(before);
  });

  it.each([
    ['is no JSON', '{"version"'],
    ['holds no group', '{"version":1,"members":[]}'],
  ])('a group file that %s stops the node', async (_what, text) => {
    const w = new ServerWorld();
    const [n1] = await w.quorum();
    w.kill(n1);
    await w.outcome(w.disk('n1').diskOf(w.process('n1')).replaceFile(GROUP, Buffer.from(text)));
    const again = w.begin('n1');
    await w.until('the refusal', () => again.refused !== null);
    expect(again.refused).toMatchObject({ code: 'corrupt' });
  });
});

async function groupFile(w: ServerWorld, id: string): Promise<boolean> {
  return w.disk(id).image().files.has(GROUP);
}

describe('a member asked by one that the group does not know', () => {
  const members = ['n1', 'n2'].map((id) => ({ id, address: `${id}:1` }));
  const group = (own: string) => ({
    version: 1,
    members: members.map((member) => ({ ...member, directoryId: member.id === 'n1' ? own : 'there' })),
  });
  const find = (answered: unknown): { outcome: Promise<unknown>; written: string[] } => {
    const written: string[] = [];
    const disk = {
      readFile: async () => null,
      replaceFile: async (path: string) => void written.push(path),
    } as unknown as Disk;
    const outcome = findGroup({
      ...{ disk, clock: createSystemClock(), directory: '/d', memberId: 'n1', directoryId: 'here' },
      ...{ hasState: false, initialClusterState: 'new' as const, members },
      ask: async () => ({ directoryId: 'there', group: answered }),
      serve: () => undefined,
      onWaiting: () => undefined,
    });
    return { outcome, written };
  };

  it('is a founder where the group holds its very directory', async () => {
    const { outcome, written } = find(group('here'));
    await expect(outcome).resolves.toEqual(group('here'));
    expect(written).toEqual(['/d/group.json']);
  });

  it('has lost its volume where the group holds another, and writes nothing', async () => {
    const { outcome, written } = find(group('gone'));
    await expect(outcome).rejects.toMatchObject({ code: 'wrong_directory' });
    expect(written).toEqual([]);
  });
});
