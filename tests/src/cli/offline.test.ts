import { afterEach, describe, expect, it } from 'vitest';
import type { ClusterFile, Plan, Simulation } from '../../../placement/index.ts';
import { AdminNode } from '../../support/admin-node.ts';
import { runCli } from '../../support/cli.ts';

const lopsided = {
  version: 1,
  brokers: [{ id: 'b1' }, { id: 'b2' }, { id: 'b3' }],
  resources: [{ name: 's', shards: 6, replicationFactor: 3 }],
  assignments: [0, 1, 2, 3, 4, 5].map((n) => ({
    shard: `stream:s/${n}`,
    leader: 'b1',
    replicas: ['b1', 'b2', 'b3'],
  })),
};

const files = (over: Record<string, unknown> = {}) =>
  Object.fromEntries(
    Object.entries({ 'c.json': lopsided, ...over }).map(([name, json]) => [
      name,
      typeof json === 'string' ? json : JSON.stringify(json),
    ]),
  );

const cli = (args: string[], over: Record<string, unknown> = {}) => runCli(args, { files: files(over) });

describe('plan', () => {
  it('says what the next pass would write, and why', async () => {
    const { code, out } = await cli(['plan', '-f', 'c.json', '-o', 'json']);
    expect(code).toBe(0);
    const plan = JSON.parse(out) as Plan;
    expect(plan.minimumLeaderMoves).toBe(4);
    expect(plan.steps[0]).toMatchObject({ step: 'stage', from: 'b1', reason: 'balance' });
    expect(plan.steps[0]?.why.rule).not.toBe('');
  });

  it('for people shows the rule and the detail of each step', async () => {
    const { code, out } = await cli(['plan', '-f', 'c.json']);
    expect(code).toBe(0);
    expect(out).toMatch(/^STEP +SHARD +ROLE +FROM +TO +REASON +RULE/);
    expect(out).toMatch(/minimum leader moves: 4/);
  });

  it('reads standard input', async () => {
    const { code, out } = await cli(['plan', '-f', '-', '-o', 'json'], { '-': lopsided });
    expect(code).toBe(0);
    expect((JSON.parse(out) as Plan).minimumLeaderMoves).toBe(4);
  });
});

describe('simulate', () => {
  it('levels the cluster in the fewest moves and prints it whole', async () => {
    const { code, out, note } = await cli(['simulate', '-f', 'c.json', '-o', 'json']);
    expect({ code, note }).toEqual({ code: 0, note: '' });
    const result = JSON.parse(out) as Simulation;
    expect(Object.keys(result)).toEqual(['settled', 'passes', 'phases']);
    const [phase] = result.phases;
    expect(Object.keys(phase ?? {})).toEqual([
      'event',
      'settled',
      'passes',
      'virtualMs',
      'steps',
      'moves',
      'minimumLeaderMoves',
      'waiting',
      'unplaceable',
      'unspread',
      'conflicts',
      'levels',
      'cluster',
    ]);
    expect(phase?.moves).toHaveLength(4);
    expect(phase?.levels.leaders).toEqual({ 'stream:s': { b1: 2, b2: 2, b3: 2 } });
    // The cluster it ends in is a cluster file like any other.
    const again = await cli(['simulate', '-f', 'd.json', '-o', 'json'], { 'd.json': phase?.cluster });
    expect((JSON.parse(again.out) as Simulation).phases[0]?.steps).toEqual([]);
  });

  it('lets events happen one after the other', async () => {
    const events = [
      { drain: 'b3' },
      { setResource: { name: 's', replicationFactor: 2 } },
      { setBroker: { id: 'b1', maxShards: 6 } },
    ];
    const { out } = await cli(['simulate', '-f', 'c.json', '--events', 'e.json', '-o', 'json'], {
      'e.json': events,
    });
    const { phases } = JSON.parse(out) as Simulation;
    expect(phases.map(({ event }) => event)).toEqual([null, ...events].slice(0, phases.length));
    const cluster = phases[2]?.cluster as ClusterFile;
    for (const { replicas } of cluster.assignments) expect([...replicas].sort()).toEqual(['b1', 'b2']);
  });

  it('moves by hand what an operator asks for, also while placement is paused', async () => {
    const { out } = await cli(['simulate', '-f', 'p.json', '--events', 'e.json', '-o', 'json'], {
      'p.json': { ...lopsided, policy: { paused: true } },
      'e.json': [{ move: { shard: 's/0', to: 'b2' } }],
    });
    const { phases } = JSON.parse(out) as Simulation;
    expect(phases[0]?.steps).toEqual([]);
    expect(phases[1]?.steps[0]).toMatchObject({ pass: 0, reason: 'operator', to: 'b2' });
    expect(phases[1]?.moves).toMatchObject([{ shard: 'stream:s/0', from: 'b1', to: 'b2', copied: false }]);
    expect(phases[1]?.cluster.assignments[0]?.leader).toBe('b2');
  });

  it('exits 1 and says so where the passes do not suffice, what there is printed all the same', async () => {
    const { code, out, note } = await cli(['simulate', '-f', 'c.json', '--max-passes', '2', '-o', 'json']);
    expect({ code, note }).toEqual({ code: 1, note: 'not settled within 2 passes\n' });
    expect(JSON.parse(out)).toMatchObject({ settled: false, passes: 2 });
  });

  it('for people ends with the levels of each phase', async () => {
    const { out } = await cli(['simulate', '-f', 'c.json', '--events', 'e.json'], {
      'e.json': [{ down: 'b1' }],
    });
    expect(out).toMatch(/^start\nPASS +STEP/);
    expect(out).toMatch(/leader moves: 4 \(fewest possible: 4\), copy moves: 0/);
    expect(out).toMatch(/event \{"down":"b1"\}/);
    expect(out).toMatch(/settled after \d+ passes\n$/);
  });
});

describe('what is wrong', () => {
  it.each<[string, string[], Record<string, unknown>, number, RegExp]>([
    ['a file that is not there', ['simulate', '-f', 'x.json'], {}, 3, /no such file: x\.json/],
    ['no JSON', ['plan', '-f', 'x.json'], { 'x.json': '{' }, 3, /x\.json is not JSON/],
    [
      'an unknown key',
      ['plan', '-f', 'x.json'],
      { 'x.json': { ...lopsided, nodes: [] } },
      3,
      /x\.json: "nodes" is not a known key/,
    ],
    [
      'an unknown event',
      ['simulate', '-f', 'c.json', '--events', 'e.json'],
      { 'e.json': [{ explode: 'b1' }] },
      3,
      /e\.json\[0\]: "explode"/,
    ],
    [
      'an event that does not fit',
      ['simulate', '-f', 'c.json', '--events', 'e.json'],
      { 'e.json': [{ remove: 'b1' }] },
      3,
      /e\.json: event 1 \(remove\): broker b1 still holds/,
    ],
    [
      'an event of more shards than one cluster holds',
      ['simulate', '-f', 'c.json', '--events', 'e.json'],
      { 'e.json': Array.from({ length: 5 }, (_, i) => ({ create: { name: `r${i}`, shards: 100_000 } })) },
      3,
      /e\.json\[4\]\.create: 500006 shards in all, at most 500000 are allowed \(limit_exceeded\)/,
    ],
    [
      'cluster and events on one standard input',
      ['simulate', '-f', '-', '--events', '-'],
      { '-': lopsided },
      2,
      /cannot both be standard input/,
    ],
    [
      'a cluster on standard input that is wrong',
      ['plan', '-f', '-'],
      { '-': { ...lopsided, version: 2 } },
      3,
      /standard input: version/,
    ],
    ['no file named', ['plan'], {}, 2, /required option '-f/],
    ['neither a file nor a cluster', ['simulate'], {}, 2, /name a cluster file with -f/],
    ['both', ['simulate', '-f', 'c.json', '--live'], {}, 2, /cannot be used with/],
    [
      'a format that is none',
      ['simulate', '-f', 'c.json', '-o', 'xml'],
      {},
      2,
      /Allowed choices are table, json/,
    ],
    ['passes that are no number', ['simulate', '-f', 'c.json', '--max-passes', 'few'], {}, 2, /whole number/],
  ])('%s is told with its exit code', async (_what, args, over, code, message) => {
    const ran = await cli(args, over);
    expect(ran.note).toMatch(message);
    expect({ code: ran.code, out: ran.out }).toEqual({ code, out: '' });
  });
});

describe('nowhere to go', () => {
  const start = { ...lopsided, assignments: lopsided.assignments.slice(0, 1) };

  it.each<[string, Record<string, unknown>, string, RegExp]>([
    [
      'no broker at all',
      { ...start, brokers: [], assignments: [] },
      'unplaceable',
      /stream:s\/5: no_live_broker: no broker has registered/,
    ],
    [
      'all brokers down',
      { ...start, brokers: ['b1', 'b2', 'b3'].map((id) => ({ id, lifecycle: 'down' })) },
      'unplaceable',
      /stream:s\/0: only_copy_unavailable: b1 \(down\), b2 \(down\), b3 \(down\) hold all of it/,
    ],
    [
      'a replication factor above the live brokers',
      { ...start, resources: [{ name: 's', shards: 6, replicationFactor: 4 }] },
      'waiting',
      /stream:s\/0: no_destination: no live broker outside the set: all 3 live brokers hold a copy already/,
    ],
    [
      'all at their caps',
      { ...start, brokers: ['b1', 'b2', 'b3'].map((id) => ({ id, maxShards: 1 })) },
      'unplaceable',
      /stream:s\/5: no_room: its 3 copies need 3 brokers with room .*: b1 holds 1 of maxShards 1, b2 holds 1 /,
    ],
  ])('%s: plan and simulate say so, exit 0, and take nothing away', async (_what, file, list, message) => {
    const planned = await cli(['plan', '-f', 'x.json'], { 'x.json': file });
    expect({ code: planned.code, note: planned.note }).toEqual({ code: 0, note: '' });
    expect(planned.out).toMatch(message);
    expect(planned.out).toContain(`${list}: `);
    const { code, out } = await cli(['simulate', '-f', 'x.json', '-o', 'json'], { 'x.json': file });
    const { settled, phases } = JSON.parse(out) as Simulation;
    expect({ code, settled }).toEqual({ code: 0, settled: true });
    const held = phases[0]?.cluster.assignments.find(({ shard }) => shard === 'stream:s/0')?.replicas ?? [];
    const before = (file['assignments'] as typeof lopsided.assignments).flatMap(({ replicas }) => replicas);
    expect(held).toEqual(expect.arrayContaining(before));
  });
});

describe('simulate --live', () => {
  let node: AdminNode | undefined;
  afterEach(() => node?.stop());

  it('starts from a running cluster and leaves it alone', async () => {
    node = await AdminNode.start();
    const at = ['--endpoints', node.address];
    await runCli(['import', '-f', 'c.json', ...at], { files: files() });
    const before = (await runCli(['export', ...at], { files: {} })).out;
    const { code, out } = await runCli(['simulate', '--live', '-o', 'json', ...at], { files: {} });
    expect(code).toBe(0);
    expect((JSON.parse(out) as Simulation).phases[0]?.moves).toHaveLength(4);
    expect((await runCli(['export', ...at], { files: {} })).out).toBe(before);
  });
});
