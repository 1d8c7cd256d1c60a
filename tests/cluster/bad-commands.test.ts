import type { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildProgram } from '../../src/cli/index.ts';
import { leaves, runCli } from '../support/cli.ts';
import { Cluster, rpc, until } from '../support/cluster.ts';
import { clusterFile, skewed } from '../support/layouts.ts';

const HUGE = '9'.repeat(40);
const LONG = 'x'.repeat(5_000);

/** What is asked, the exit code, and what the message must say. */
const CASES: readonly (readonly [line: string, code: number, says: RegExp])[] = [
  // Wrong.
  ['broker show nobody', 3, /no broker "nobody" \(not_found\)/],
  ['broker drain nobody', 3, /there is no broker nobody \(not_found\)/],
  ['broker undrain nobody', 3, /there is no broker nobody \(not_found\)/],
  ['broker remove nobody', 3, /there is no broker nobody \(not_found\)/],
  ['broker remove b1', 4, /b1 still holds 2 shards \(stream:s\/0, stream:s\/1\): drain it.*\(refused\)/],
  ['broker remove b1 --wait --wait-timeout 50ms', 124, /b1: 2 leaders, 2 copies left after 50 ms/],
  ['broker drain b/1', 3, /b\/1.*\(invalid_argument\)/],
  [`broker drain ${LONG}`, 3, /\(invalid_argument\)/],
  ['broker drain b1 --wait-timeout soon', 2, /duration like 500ms/],
  ['broker drain b1 --wait-timeout -5s', 2, /duration like 500ms/],
  ['broker drain b1 --force', 2, /unknown option '--force'/],
  ['resource show nothing', 3, /nothing.*\(not_found\)/],
  ['resource alter nothing --shards 3', 3, /nothing.*\(not_found\)/],
  ['resource delete nothing', 3, /nothing.*\(not_found\)/],
  ['resource create s --shards 2', 4, /stream:s exists already \(already_exists\)/],
  ['resource create x --shards 0', 3, /shards.*\(invalid_argument\)/],
  ['resource create x --shards 1.5', 2, /whole number/],
  ['resource create x --shards -1', 2, /whole number/],
  [`resource create x --shards ${HUGE}`, 2, /whole number/],
  ['resource create x --shards 9007199254740991', 3, /shards.*\((limit_exceeded|invalid_argument)\)/],
  ['resource create x --shards 100001', 3, /shards.*\((limit_exceeded|invalid_argument)\)/],
  ['resource create x --shards 1 --replication-factor 0', 3, /replicationFactor.*\(invalid_argument\)/],
  [
    'resource create x --shards 1 --replication-factor 17',
    3,
    /replicationFactor.*\((limit_exceeded|invalid_argument)\)/,
  ],
  ['resource create a/b/c/d --shards 1', 3, /a\/b\/c\/d.*1 to 3.*\(invalid_argument\)/],
  [`resource create ${LONG} --shards 1`, 3, /\(invalid_argument\)/],
  [`resource create x --shards 1 --label a=${LONG}`, 3, /label.*4096.*\((limit_exceeded|invalid_argument)\)/],
  ['resource create x --shards 1 --zone-policy rack', 2, /Allowed choices are broker, zone, majority/],
  [
    'resource alter s --shards 1',
    3,
    /stream:s has 2 shards: their number can only be raised \(invalid_argument\)/,
  ],
  [
    'resource alter s --shards 3 --expected-revision 1',
    4,
    /stream:s is at revision \d+, not 1.*\(conflict\)/,
  ],
  ['resource alter s', 3, /\(invalid_argument\)/],
  ['resource alter s --replication-factor 99', 3, /replicationFactor.*\((limit_exceeded|invalid_argument)\)/],
  ['shard show s', 3, /\(invalid_argument\)/],
  ['shard show s/99', 3, /s\/99.*\(not_found\)/],
  ['shard explain s/99', 3, /stream:s\/99 is no shard of the cluster \(not_found\)/],
  ['shard explain none/0', 3, /stream:none\/0 is no shard of the cluster \(not_found\)/],
  ['shard abandon s/99', 3, /s\/99.*\(not_found\)/],
  ['shard abandon s/0', 4, /stream:s\/0: b1.* \(refused\)/],
  [`shard show s/${HUGE}`, 3, /\(invalid_argument\)/],
  ['move start s/0 --to nobody', 3, /no broker nobody is registered \(not_found\)/],
  ['move start s/99 --to b2', 3, /stream:s\/99 is no shard of the cluster \(not_found\)/],
  ['move start s/0 --to b1', 4, /b1 leads it already \(refused\)/],
  ['move start s/0 --to b2 --expected-generation 7', 4, /stream:s\/0 is at generation 1, not 7 \(stale\)/],
  [`move start s/0 --to b2 --expected-generation ${HUGE}`, 2, /whole number/],
  ['move start s/0', 2, /required option '--to <broker>' not specified/],
  ['move start s/0 --to b2 --role boss', 2, /Allowed choices are leader, follower/],
  ['move start s/0 --to b2 --role follower', 3, /"from" is needed for a follower.*\(invalid_argument\)/],
  ['move cancel s/0', 4, /no move in flight: there is nothing to cancel \(refused\)/],
  ['move cancel s/99', 3, /stream:s\/99 is no shard of the cluster \(not_found\)/],
  ['placement policy nonsense=1', 3, /nonsense.*\(invalid_argument\)/],
  ['placement policy maxConcurrentMoves', 3, /maxConcurrentMoves.*key=value.*\(invalid_argument\)/],
  ['placement policy maxConcurrentMoves=0', 3, /maxConcurrentMoves.*\(invalid_argument\)/],
  ['placement policy maxConcurrentMoves=-1', 3, /maxConcurrentMoves.*\(invalid_argument\)/],
  [
    `placement policy maxConcurrentMoves=${HUGE}`,
    3,
    /maxConcurrentMoves.*\((limit_exceeded|invalid_argument)\)/,
  ],
  ['placement policy maxConcurrentMoves=many', 3, /maxConcurrentMoves.*\(invalid_argument\)/],
  ['placement policy zonePolicy=rack', 3, /zonePolicy.*\(invalid_argument\)/],
  ['placement policy paused=perhaps', 3, /paused.*\(invalid_argument\)/],
  ['placement policy restoreAfterMs=1 --expected-revision 1', 4, /revision.*\(conflict\)/],
  ['placement plan --output xml', 2, /Allowed choices are table, wide, json, yaml/],
  ['placement rebalance', 2, /unknown command 'rebalance'/],
  ['placement pause now', 2, /too many arguments/],
  ['cluster status now', 2, /too many arguments/],
  ['cluster status --timeout 61s', 2, /at most 60s/],
  ['cluster status --endpoints localhost', 3, /endpoint "localhost" is not host:port \(invalid_argument\)/],
  ['cluster status --endpoints http://127.0.0.1:7401', 3, /endpoint "http:.*" is not host:port/],
  ['cluster status --endpoints ,', 3, /no endpoints given \(invalid_argument\)/],
  ['cluster health --output text', 2, /Allowed choices are table, wide, json, yaml/],
  ['raft status n1', 2, /too many arguments/],
  ['raft transfer n9', 3, /no member "n9"; the members are n1, n2, n3 \(not_found\)/],
  [`raft transfer ${LONG}`, 3, /\(invalid_argument\)/],
  ['raft snapshot n9', 3, /no member "n9"; the members are n1, n2, n3 \(not_found\)/],
  [`raft snapshot ${LONG}`, 3, /\(invalid_argument\)/],
  ['raft snapshot n1 n2', 2, /too many arguments/],
  ['raft transfer n1 n2', 2, /too many arguments/],
  ['member list --all', 2, /unknown option '--all'/],
  ['broker list b1', 2, /too many arguments/],
  ['broker undrain', 2, /missing required argument 'id'/],
  ['broker append s/99 value', 3, /s\/99.*\(not_found\)/],
  ['broker append s/0', 2, /missing required argument 'value'/],
  ['broker append s/0 value', 4, /broker b1 has no address "data": it is no reference broker \(refused\)/],
  ['broker read s/0 --from -1', 2, /whole number/],
  [`broker read s/0 --limit ${HUGE}`, 2, /whole number/],
  ['resource list s', 2, /too many arguments/],
  ['shard list --resource a/b/c/d', 3, /a\/b\/c\/d.*1 to 3.*\(invalid_argument\)/],
  ['shard list --kind topic', 2, /Allowed choices are stream, cache/],
  ['move list --from b1', 2, /unknown option '--from'/],
  ['placement levels s', 2, /too many arguments/],
  ['placement replication --kind stream', 2, /unknown option '--kind'/],
  ['placement resume now', 2, /too many arguments/],
  ['watch --from-revision later', 2, /whole number/],
  ['watch --from-revision 999999999', 5, /before 999999999.*\(unavailable\)/],
  ['export file.json', 2, /too many arguments/],
  ['completion csh', 2, /Allowed choices are bash, zsh, fish/],
  ['dev --nodes 0', 3, /--nodes 0: it must be 1 to 7 \(invalid_argument\)/],
  [`dev --brokers ${HUGE}`, 2, /whole number/],
  ['dev --port 99999 --cluster good.json', 3, /--port 99999.*\(invalid_argument\)/],
  ['dev --cluster missing.json', 3, /no such file: missing\.json/],
  ['broker run', 2, /required option '--id <id>' not specified/],
  ['broker run --id b9 --cluster-id c --data-dir d --copy-rate 0', 2, /1 or more/],
  // Contradictory.
  ['placement policy --expected-revision 3', 2, /--expected-revision is for a change/],
  ['move start s/0 --from b2 --to b2', 4, /stream:s\/0: b1 leads it, not b2 \(refused\)/],
  ['broker remove b1 --wait-timeout 50ms', 124, /b1: 2 leaders, 2 copies left after 50 ms/],
  ['stream show cache:s', 3, /is a cache, and a stream was asked for \(invalid_argument\)/],
  ['resource create cache:x --kind stream --shards 1', 3, /is a cache, and a stream was asked for/],
  ['simulate --live -f file.json', 2, /cannot be used with/],
  ['simulate', 2, /name a cluster file with -f, or start from a running cluster with --live/],
  ['simulate --live --max-passes none', 2, /whole number/],
  ['simulate --live --events missing.json', 3, /no such file: missing\.json/],
  ['simulate --live --events events.json', 3, /event 1 \(move\).*\(invalid_argument\)/],
  ['plan -f missing.json', 3, /no such file: missing\.json/],
  ['plan', 2, /required option '-f, --file <path>' not specified/],
  ['import -f broken.json', 3, /broken\.json is not JSON.*\(invalid_argument\)/],
  ['import -f good.json', 4, /in use.*overwrite.*\(refused\)/],
];

/** Options that take any text, and those that a command may well run with. */
const TAKEN: Readonly<Record<string, readonly string[]>> = {
  '*': ['endpoints'],
  dev: ['data-dir'],
  'broker run': ['id', 'cluster-id', 'data-dir', 'listen', 'zone', 'label'],
};

/** A line for each option and argument of a command, with a value that it cannot have. */
function spoiled(path: string, command: Command): string[][] {
  const words = path.split(' ');
  const values = [LONG, `${HUGE}!`, ''];
  const given = command.registeredArguments.filter(({ required }) => required).map(() => 's/0');
  const needed = command.options.filter(({ mandatory }) => mandatory);
  const lines: string[][] = [[...words, ...given, `--${LONG}`]];
  if (!command.registeredArguments.some(({ variadic }) => variadic)) {
    const most = command.registeredArguments.map(() => 's/0');
    lines.push([...words, ...most, 'one-too-many', ...needed.flatMap(({ long }) => [long ?? '', 'x'])]);
  }
  for (const option of command.options) {
    const name = option.name();
    if (TAKEN['*']?.includes(name) || TAKEN[path]?.includes(name)) continue;
    const rest = needed.filter((other) => other !== option).flatMap(({ long }) => [long ?? '', 'good.json']);
    if (!option.required) lines.push([...words, ...given, ...rest, `--${name}=${LONG}`]);
    else for (const value of values) lines.push([...words, ...given, ...rest, `--${name}`, value]);
  }
  if (given.length === 0) return lines;
  const complete = needed.flatMap(({ long }) => [long ?? '', 'good.json']);
  return [...lines, ...values.map((value) => [...words, ...given.map(() => value), ...complete])];
}

const COMMANDS = leaves(buildProgram());

const FILES = {
  'broken.json': '{',
  'good.json': '{"version": 1, "brokers": [], "resources": []}',
  'events.json': '[{"move": {"shard": "stream:s/0", "to": "b1"}}]',
};

describe('commands that ask for what cannot be', () => {
  let cluster: Cluster;
  let before: unknown;
  const exported = async (): Promise<unknown> => (await rpc(cluster.address(0), 'export'))['cluster'];

  beforeAll(async () => {
    cluster = await Cluster.start({ flags: ['--expiry-ms', '3600000', '--lease-ms', '3000000'] });
    const stream = skewed({ name: 's', brokers: ['b1', 'b2'], leaders: [2, 0], replicationFactor: 2 });
    await cluster.import(clusterFile(['b1', 'b2'], [stream], { paused: true }));
    before = await exported();
  });
  afterAll(async () => {
    await cluster.stop();
  });

  it.each(CASES.map(([line, ...rest]) => [line.slice(0, 80), line, ...rest] as const))(
    '%s',
    async (_, line, code, says) => {
      const alone = /^(plan|completion|dev|broker run)( |$)|^simulate( |$)(?!.*--live)|--endpoints/.test(
        line,
      );
      const args = [...line.split(' '), ...(alone ? [] : ['--endpoints', cluster.endpoints])];
      const run = await runCli(args, { files: FILES });
      expect(run.note).toMatch(says);
      expect(run.code, run.note).toBe(code);
      expect(run.out).toBe('');
      // One line for a person, however large the argument was; no stack of ours.
      expect(run.note).not.toMatch(/\n\s+at /);
      expect(run.note.length).toBeLessThan(1_000);
    },
  );

  it('has a row for every command', () => {
    const without = COMMANDS.map(([path]) => path).filter(
      (path) => !/^(stream|cache) /.test(path) && !CASES.some(([line]) => `${line} `.startsWith(`${path} `)),
    );
    expect(without).toEqual([]);
  });

  it.each(COMMANDS)('%s: every option and argument with what it cannot take', async (path, command) => {
    const online = command.options.some(({ long }) => long === '--endpoints') && path !== 'broker run';
    for (const line of spoiled(path, command)) {
      const run = await runCli([...line, ...(online ? ['--endpoints', cluster.endpoints] : [])], {
        files: FILES,
      });
      const said = `${line.join(' ').slice(0, 100)}: ${run.note}`;
      expect([2, 3, 4], said).toContain(run.code);
      expect(run.out, said).toBe('');
      expect(run.note, said).toMatch(/^error: /);
      expect(run.note, said).not.toMatch(/\n\s+at |\(internal\)/);
      expect(run.note.length, said).toBeLessThan(1_000);
    }
  });

  it('change nothing, on no member', async () => {
    expect(await exported()).toEqual(before);
    await until('one state', async () => cluster.sameHash());
    expect(cluster.nodes.every((node) => node?.running)).toBe(true);
  });

  it.each([
    ['GET', '/v1/nothing', undefined, 404, 'not_found'],
    ['POST', '/v1/brokers/nobody/drain', undefined, 404, 'not_found'],
    ['GET', '/v1/brokers/b1/drain', undefined, 405, 'unknown_method'],
    ['POST', '/v1/shard-moves', '{"shard": "stream:s/0"}', 400, 'invalid_argument'],
    ['POST', '/v1/shard-moves', '{"shard": "stream:s/0", "to": "b1"}', 409, 'refused'],
    ['POST', '/v1/shard-moves', '{"shard": ', 400, 'invalid_argument'],
    [
      'POST',
      '/v1/shard-moves',
      JSON.stringify({ shard: 'x'.repeat(2_000_000), to: 'b1' }),
      413,
      'limit_exceeded',
    ],
    ['DELETE', '/v1/shard-moves/stream%3As%2F0', undefined, 409, 'refused'],
    ['DELETE', '/v1/shard-moves/stream%3As%2F99', undefined, 404, 'not_found'],
    ['DELETE', '/v1/shard-moves/%', undefined, 404, 'not_found'],
    ['POST', '/v1/placement/pause', '{"now": true}', 400, 'invalid_argument'],
    ['GET', '/v1/placement/plan?colour=red', undefined, 400, 'invalid_argument'],
    ['GET', '/v1/shard-assignments?limit=0', undefined, 400, 'invalid_argument'],
    ['GET', '/v1/shard-assignments?limit=99999999999999999999', undefined, 400, 'invalid_argument'],
  ])('%s %s (%#) is refused by its code', async (method, path, body, status, code) => {
    const response = await fetch(`http://${cluster.address(1)}${path}`, {
      method,
      ...(body === undefined ? {} : { body, headers: { 'content-type': 'application/json' } }),
    });
    const answer = (await response.json()) as { error: { code: string; message: string } };
    expect([response.status, answer.error.code], answer.error.message).toEqual([status, code]);
  });

  it('GET and POST under /v1 do what the commands do', async () => {
    const get = async (path: string): Promise<Record<string, unknown>> =>
      (await (await fetch(`http://${cluster.address(2)}${path}`)).json()) as Record<string, unknown>;
    const post = async (path: string): Promise<number> =>
      (await fetch(`http://${cluster.address(2)}${path}`, { method: 'POST' })).status;
    expect((await get('/v1/shard-assignments?leader=b1'))['items']).toHaveLength(2);
    expect(await post('/v1/placement/resume')).toBe(200);
    expect(await post('/v1/placement/pause')).toBe(200);
    expect((await cluster.status()).placement.paused).toBe(true);
    expect(await get('/v1/placement/plan')).toMatchObject({
      steps: expect.any(Array),
      waiting: expect.any(Array),
    });
    expect(await post('/v1/brokers/b2/drain')).toBe(200);
    expect(await get('/v1/brokers/b2')).toMatchObject({ broker: { drain: true, lifecycle: 'draining' } });
    expect(await post('/v1/brokers/b2/undrain')).toBe(200);
  });
});
