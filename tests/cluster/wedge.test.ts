import { readFileSync } from 'node:fs';
import { afterEach, expect, test } from 'vitest';
import { Cluster, Process, rpc, RpcFailure, until } from '../support/cluster.ts';
import { leaderOf, raftStatus } from '../support/leaders.ts';
import { RpcSocket } from '../support/rpc-socket.ts';

const NODES = [0, 1, 2];
const ELECTION_MS = 500;
/** Calls that one node has under way at most. */
const MAX_CALLS = 2_048;
const MAX_GROWTH_KIB = 200 * 1024;

let cluster: Cluster;
const sockets: RpcSocket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.close();
  for (const node of cluster.nodes) node?.child.kill('SIGCONT');
  await cluster.stop();
});

async function start(electionMs = ELECTION_MS): Promise<{ leader: number; others: number[] }> {
  const flags = ['--election-timeout-ms', String(electionMs), '--raft-heartbeat-ms', '100'];
  cluster = await Cluster.start({ flags: [...flags, '--log-level', 'warn'] });
  const leader = await leaderOf(cluster, NODES);
  await rpc(cluster.address(leader), 'resource.create', { name: 'r', shards: 1 });
  await write(leader, 'old');
  return { leader, others: NODES.filter((node) => node !== leader) };
}

async function write(node: number, value: string): Promise<number> {
  const params = { name: 'r', labels: { v: value } };
  return (await rpc<{ revision: number }>(cluster.address(node), 'resource.alter', params)).revision;
}

function signal(nodes: readonly number[], name: 'SIGSTOP' | 'SIGCONT'): void {
  for (const node of nodes) cluster.nodes[node]?.child.kill(name);
}

async function socketTo(node: number): Promise<RpcSocket> {
  const socket = await RpcSocket.open(cluster.address(node));
  sockets.push(socket);
  return socket;
}

interface Shown {
  readonly term: number;
  readonly resource: { readonly labels: Readonly<Record<string, string>> };
}

/** The code of the failure, and its outcome where it has one; or `done`. */
async function verdictOf(answer: Promise<unknown>): Promise<string> {
  try {
    await answer;
    return 'done';
  } catch (error) {
    if (!(error instanceof RpcFailure)) throw error;
    const { code, outcome } = error.error.data;
    return typeof outcome === 'string' ? `${code} ${outcome}` : code;
  }
}

async function readiness(node: number): Promise<number> {
  return (await fetch(`http://${cluster.address(node)}/readyz`, { signal: AbortSignal.timeout(5_000) }))
    .status;
}

test('hazard 4: reads queued at a leader that is stopped, replaced and continued see what was written meanwhile', async () => {
  const { leader, others } = await start();
  const { term } = await raftStatus(cluster, leader);
  const socket = await socketTo(leader);
  signal([leader], 'SIGSTOP');
  const stoppedAt = performance.now();
  const show = { name: 'r', deadlineMs: 60_000 };
  const queued = Array.from({ length: 20 }, () => socket.call('resource.show', show));
  const posted = Array.from({ length: 5 }, () =>
    rpc<Shown>(cluster.address(leader), 'resource.show', show, 60_000),
  );
  await write(await leaderOf(cluster, others), 'new');
  await until('three election time-outs', async () => performance.now() - stoppedAt > 3 * ELECTION_MS);
  signal([leader], 'SIGCONT');
  for (const answer of [...queued, ...posted]) {
    const { resource, term: answeredIn } = (await answer) as Shown & Record<string, unknown>;
    expect(resource.labels).toEqual({ v: 'new' });
    expect(answeredIn).toBeGreaterThan(term);
  }
});

test('hazard 4: reads queued at a leader that is stopped while its followers die are not answered', async () => {
  const { leader, others } = await start();
  const socket = await socketTo(leader);
  signal([leader], 'SIGSTOP');
  const queued = Array.from({ length: 20 }, () =>
    socket.call('resource.show', { name: 'r', deadlineMs: 1_500 }),
  );
  for (const node of others) await cluster.killNode(node);
  signal([leader], 'SIGCONT');
  for (const answer of queued) {
    expect(['no_leader', 'deadline_exceeded', 'unavailable']).toContain(await verdictOf(answer));
  }
  expect((await raftStatus(cluster, leader)).role).not.toBe('leader');
  expect(await readiness(leader)).toBe(503);
});

/** Resident memory of a node, KiB. */
function residentKib(node: number): number {
  const status = readFileSync(`/proc/${cluster.nodes[node]?.child.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]);
}

test('hazard 35: without a quorum writes end by their deadline, reads have no answer, the log stays bounded', async () => {
  // Long, so that the leader goes on leading while nobody follows.
  const { leader, others } = await start(5_000);
  const writers = await Promise.all(Array.from({ length: 4 }, () => socketTo(leader)));
  const before = await raftStatus(cluster, leader);
  const memory = residentKib(leader);
  signal(others, 'SIGSTOP');
  const text = 'x'.repeat(1_000);
  const writes = Array.from({ length: 4_000 }, (_, n) => {
    const params = { name: 'r', labels: { v: `w${n}`, text }, deadlineMs: 2_000 };
    return verdictOf((writers[n % 4] as RpcSocket).call('resource.alter', params));
  });
  const reads = Array.from({ length: 20 }, (_, n) =>
    verdictOf((writers[n % 4] as RpcSocket).call('resource.show', { name: 'r', deadlineMs: 2_000 })),
  );
  const verdicts = await Promise.all(writes);
  expect(verdicts).toContain('deadline_exceeded unknown');
  const allowed = ['deadline_exceeded unknown', 'outcome_unknown unknown', 'overloaded', 'no_leader'];
  expect(verdicts.filter((verdict) => !allowed.includes(verdict))).toEqual([]);
  for (const read of await Promise.all(reads)) {
    expect(['no_leader', 'deadline_exceeded', 'overloaded', 'unavailable']).toContain(read);
  }
  const { commitIndex, lastIndex } = await raftStatus(cluster, leader);
  expect(commitIndex).toBe(before.commitIndex);
  expect(lastIndex - before.lastIndex).toBeGreaterThan(0);
  expect(lastIndex - before.lastIndex).toBeLessThanOrEqual(MAX_CALLS);
  expect(residentKib(leader) - memory).toBeLessThan(MAX_GROWTH_KIB);

  signal(others, 'SIGCONT');
  await until('a write', async () => write(leader, 'after'));
  // What was in the log is committed now; nothing was put there a second time.
  const after = await raftStatus(cluster, await leaderOf(cluster, NODES));
  expect(after.lastIndex - lastIndex).toBeLessThan(10);
  await cluster.sameHash();
}, 180_000);

test('hazard 5: a member killed while it starts and replays is ready only once it has what was acknowledged', async () => {
  const { leader, others } = await start();
  const [behind] = others as [number];
  await cluster.killNode(behind);
  const writer = await socketTo(leader);
  for (let part = 0; part < 10; part += 1) {
    await Promise.all(
      Array.from({ length: 200 }, (_, n) =>
        writer.call('resource.alter', { name: 'r', labels: { v: `${part}-${n}` } }),
      ),
    );
  }
  await write(leader, 'last');
  // Killed while it opens its directory, while it takes in the log, and once it serves.
  for (const moment of [/./, /./, /^ready /]) {
    const started = new Process(cluster.serveArguments(behind), {});
    cluster.nodes[behind] = started;
    if (moment.source === '.') await until('liveness', async () => (await livenessOf(behind)) === 200);
    else await started.line(moment);
    await cluster.killNode(behind);
  }

  const rest = NODES.filter((node) => node !== behind);
  signal(rest, 'SIGSTOP');
  cluster.nodes[behind] = new Process(cluster.serveArguments(behind), {});
  await until('liveness', async () => (await livenessOf(behind)) === 200);
  for (let n = 0; n < 20; n += 1) {
    expect(await readiness(behind)).toBe(503);
    const read = rpc(cluster.address(behind), 'resource.show', { name: 'r', deadlineMs: 50 });
    await expect(read).rejects.toThrow();
  }
  signal(rest, 'SIGCONT');
  await until('readiness', async () => (await readiness(behind)) === 200);
  const shown = await rpc<Shown>(cluster.address(behind), 'resource.show', {
    name: 'r',
    consistency: 'local',
  });
  expect(shown.resource.labels).toEqual({ v: 'last' });
  await cluster.sameHash();
}, 180_000);

async function livenessOf(node: number): Promise<number> {
  return (await fetch(`http://${cluster.address(node)}/livez`, { signal: AbortSignal.timeout(5_000) }))
    .status;
}
