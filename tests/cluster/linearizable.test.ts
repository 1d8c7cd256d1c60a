import { applyAll } from '../support/apply-all.ts';
import { afterEach, expect, test } from 'vitest';
import { Machine } from '../../src/apply/index.ts';
import { AdminClient } from '../../src/client/index.ts';
import { createSystemClock } from '../../src/clock.ts';
import { decodeCommand } from '../../src/command/index.ts';
import { createWebSocketNet } from '../../src/net-ws.ts';
import { ChangeRing } from '../../src/watch/index.ts';
import type { Entry } from '../../raft/index.ts';
import { Cluster, until } from '../support/cluster.ts';
import { leaderOf } from '../support/leaders.ts';
import { checkLinearizable } from '../support/linearizability.ts';
import { memberLog } from '../support/member-log.ts';
import { AdminRegisters, RepeatingRegisters } from '../support/register-client.ts';
import { RegisterLoad } from '../support/register-load.ts';
import { registerModel } from '../support/register.ts';

const NODES = [0, 1, 2];
const KEYS = ['r0', 'r1', 'r2', 'r3'];
/** Short, so that a lost leader is replaced soon; a loaded machine only makes for more elections. */
const FLAGS = ['--election-timeout-ms', '500', '--raft-heartbeat-ms', '100', '--log-level', 'warn'];
/** Acknowledged writes that show that the cluster goes on. */
const PROGRESS = 20;

let cluster: Cluster;
let load: RegisterLoad;

afterEach(async () => {
  for (const node of cluster.nodes) node?.child.kill('SIGCONT');
  await load.stop();
  await cluster.stop();
});

const but = (...nodes: number[]): number[] => NODES.filter((node) => !nodes.includes(node));

async function followerOf(nodes: readonly number[]): Promise<number> {
  const leader = await leaderOf(cluster, nodes);
  return nodes.find((node) => node !== leader) as number;
}

async function progress(): Promise<void> {
  const from = load.acknowledged.length;
  await until('acknowledged writes', async () => load.acknowledged.length >= from + PROGRESS);
}

function signal(node: number, name: 'SIGSTOP' | 'SIGCONT'): void {
  cluster.nodes[node]?.child.kill(name);
}

async function killed(node: number): Promise<void> {
  await cluster.killNode(node);
  await progress();
  await cluster.startNode(node);
}

async function stopped(node: number): Promise<void> {
  signal(node, 'SIGSTOP');
  await leaderOf(cluster, but(node));
  await progress();
  signal(node, 'SIGCONT');
}

const ROUNDS: readonly [name: string, run: () => Promise<void>][] = [
  ['the leader is killed', async () => killed(await leaderOf(cluster, NODES))],
  ['a follower is stopped', async () => stopped(await followerOf(NODES))],
  ['the leader is stopped', async () => stopped(await leaderOf(cluster, NODES))],
  ['a follower is killed', async () => killed(await followerOf(NODES))],
  [
    'the leader is stopped, its successor killed, and it is continued without a quorum at first',
    async () => {
      const first = await leaderOf(cluster, NODES);
      signal(first, 'SIGSTOP');
      const second = await leaderOf(cluster, but(first));
      await cluster.killNode(second);
      signal(first, 'SIGCONT');
      await progress();
      await cluster.startNode(second);
    },
  ],
  [
    'all are killed at once',
    async () => {
      await Promise.all(NODES.map((node) => cluster.killNode(node)));
      await Promise.all(NODES.map((node) => cluster.startNode(node)));
    },
  ],
  ['the leader is stopped again', async () => stopped(await leaderOf(cluster, NODES))],
  ['the leader is killed again', async () => killed(await leaderOf(cluster, NODES))],
];

/** Whose value it writes, if it is a write of a register. */
function valueOf(entry: Entry): string | undefined {
  if (entry.kind !== 'command') return undefined;
  const { command } = decodeCommand(entry.data);
  return command.type === 'alterResource' ? (command.labels?.['v'] ?? undefined) : undefined;
}

/** How often each value took effect, by the log alone. */
function effects(log: readonly Entry[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  const machine = new Machine(new ChangeRing());
  for (const entry of log) {
    applyAll(machine, [entry]);
    const value = valueOf(entry);
    if (value === undefined || machine.view.revision !== entry.index) continue;
    counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return counts;
}

test('hazard 20: members killed and stopped under load: linearizable, nothing acknowledged lost, one effect a request', async () => {
  cluster = await Cluster.start({ flags: FLAGS });
  load = new RegisterLoad(KEYS);
  const endpoints = NODES.map((node) => cluster.address(node));
  const starting = new AdminClient({ net: createWebSocketNet(), clock: createSystemClock(), endpoints });
  for (const name of KEYS) await starting.write('resource.create', { name, shards: 1 });
  starting.close();

  const admins = NODES.map((node) => {
    const order = [...endpoints.slice(node), ...endpoints.slice(0, node)];
    const timeoutMs = node === 0 ? 1_000 : 20_000;
    const parts = { net: createWebSocketNet(), clock: createSystemClock() };
    return new AdminClient({ ...parts, endpoints: order, timeoutMs });
  });
  const repeating = NODES.map((node) => new RepeatingRegisters(endpoints, node, node === 0 ? 1_000 : 20_000));
  for (const [n, client] of admins.entries()) load.add(`a${n}`, new AdminRegisters(client));
  for (const [n, client] of repeating.entries()) load.add(`p${n}`, client);
  await progress();

  for (const [name, round] of ROUNDS) {
    await round().catch((error: unknown) => {
      throw new Error(`${name}: ${String(error)}`, { cause: error });
    });
    await progress();
  }
  await load.stop();
  for (const [n, client] of repeating.entries()) {
    for (const key of KEYS) expect(await load.read(`p${n}`, client, key)).not.toBeNull();
  }
  for (const client of admins) client.close();

  const verdict = checkLinearizable(load.history, registerModel);
  expect(verdict.ok ? '' : verdict.report).toBe('');
  expect(repeating.flatMap(({ differing }) => differing)).toEqual([]);
  expect(repeating.every(({ repeats }) => repeats > 0)).toBe(true);
  await cluster.sameHash();
  for (const node of NODES) await cluster.killNode(node);
  for (const member of ['n1', 'n2', 'n3']) {
    const log = await memberLog(cluster, member);
    const missing = load.acknowledged.filter(
      ({ revision, value }) => valueOf(log[revision - 1] as Entry) !== value,
    );
    expect(missing, `acknowledged writes that ${member} misses`).toEqual([]);
    const counts = effects(log);
    expect([...counts].filter(([, count]) => count > 1)).toEqual([]);
    for (const { value } of load.acknowledged) expect(counts.get(value), value).toBe(1);
  }
}, 240_000);
