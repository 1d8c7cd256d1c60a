import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Cluster, rpc, until } from '../support/cluster.ts';

const ELECTION_TIMEOUT_MS = 1_500;

describe('the leadership handed over by an operator', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start({ flags: ['--election-timeout-ms', String(ELECTION_TIMEOUT_MS)] });
  });
  afterAll(() => cluster.stop());

  const transfer = (...args: string[]): ReturnType<Cluster['cli']> =>
    cluster.cli('raft', 'transfer', ...args, '-o', 'json');
  const id = (node: number): string => `n${node + 1}`;
  const write = (at: number, name: string): Promise<unknown> =>
    rpc(cluster.address(at), 'resource.create', { kind: 'stream', name, shards: 1 });

  it('goes round the members, one term each, while every write is answered with success', async () => {
    const load = { on: true };
    let written = 0;
    const writer = (async () => {
      for (; load.on; written++) await write(written % 3, `w-${written}`);
    })();
    const first = await cluster.leader();
    let { term } = await cluster.status();
    for (const step of [1, 2, 3]) {
      const [from, to] = [id((first + step - 1) % 3), id((first + step) % 3)];
      const { code, stdout, stderr } = await transfer(to);
      expect(code, stderr).toBe(0);
      expect(JSON.parse(stdout)).toMatchObject({ from, to, term: ++term, leaderId: to });
      expect(stderr).toBe(`${to} leads term ${term} instead of ${from}\n`);
    }
    load.on = false;
    await writer;
    expect(written).toBeGreaterThan(0);
    expect(await rpc(cluster.address(0), 'resource.list')).toMatchObject({ items: { length: written } });
    await cluster.sameHash();
  });

  it('without a name, goes to another', async () => {
    const before = id(await cluster.leader());
    const { code, stdout } = await transfer();
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ from: before, to: expect.not.stringMatching(before) });
  });

  it('to a stranger or to itself is refused, and nothing changes', async () => {
    const leader = id(await cluster.leader());
    const { term } = await cluster.status();
    const stranger = await transfer('n9');
    expect([stranger.code, stranger.stderr]).toEqual([
      3,
      'error: no member "n9"; the members are n1, n2, n3 (not_found)\n',
    ]);
    const itself = await transfer(leader);
    expect([itself.code, itself.stderr]).toEqual([4, `error: ${leader} leads already (refused)\n`]);
    expect((await transfer('n1', 'n2')).code).toBe(2);
    expect(await cluster.status()).toMatchObject({ term, leaderId: leader });
  });

  it('hazard 28: to a process that is stopped, is refused by its end and writes go through', async () => {
    const leader = await cluster.leader();
    const { term } = await cluster.status();
    const frozen = (leader + 1) % 3;
    const process = cluster.nodes[frozen];
    process?.child.kill('SIGSTOP');
    try {
      const asked = cluster.cli('raft', 'transfer', id(frozen), '--endpoints', cluster.address(leader));
      const load = { on: true };
      void asked.finally(() => (load.on = false));
      // Those that come while the transfer is under way wait for its end, and none is lost.
      for (let n = 0; load.on; n++) await write(leader, `meanwhile-${n}`);
      const { code, stderr } = await asked;
      expect([code, stderr]).toEqual([
        4,
        `error: ${id(frozen)} did not take over within an election time-out: the leader has not changed (refused)\n`,
      ]);
      expect(await rpc(cluster.address(leader), 'raft.status')).toMatchObject({ term, role: 'leader' });
    } finally {
      process?.child.kill('SIGCONT');
    }
    await cluster.sameHash();
  });

  it('without a quorum says so by the deadline', async () => {
    const leader = await cluster.leader();
    const rest = [0, 1, 2].filter((node) => node !== leader);
    await Promise.all(rest.map((node) => cluster.killNode(node)));
    // Until it has noticed, it takes what it can no longer commit.
    await until('it leads no more', async () => {
      const status = await rpc<{ leaderId: string | null }>(cluster.address(leader), 'cluster.status', {
        consistency: 'local',
      });
      return status.leaderId === null;
    });
    const { code, stderr } = await cluster.cli(
      ...['raft', 'transfer', id(rest[0] ?? 0), '--timeout', '1s', '--endpoints', cluster.address(leader)],
    );
    expect(code, stderr).toBe(5);
    expect(stderr).toContain('no_leader');
    await Promise.all(rest.map((node) => cluster.startNode(node)));
    await cluster.leader();
  });
});
