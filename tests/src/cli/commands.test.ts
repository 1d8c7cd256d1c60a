import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { EvenkeelError } from '../../../src/errors.ts';
import type { Assignment } from '../../../placement/index.ts';
import { AdminNode } from '../../support/admin-node.ts';
import { runCli, type CliOptions, type CliRun } from '../../support/cli.ts';
import { assignmentRow, brokerRow, importOf, resource } from '../apply/harness.ts';

let node: AdminNode;
beforeEach(async () => {
  node = await AdminNode.start();
  const rows = {
    brokers: [brokerRow('b1', { zone: 'a' }), brokerRow('b2', { maxShards: 9, weight: 2 }), brokerRow('b3')],
    resources: [
      resource('perf-quorum', { shards: 3, labels: { team: 'x' } }),
      resource('kv', { kind: 'cache', zonePolicy: 'zone' }),
    ],
    assignments: [
      assignmentRow('stream:perf-quorum/0', ['b1', 'b2']),
      assignmentRow('stream:perf-quorum/1', ['b1', 'b3']),
      assignmentRow('stream:perf-quorum/2', ['b3', 'b1'], { inSync: ['b3'], generation: 7, epoch: 5 }),
      assignmentRow('cache:kv/0', ['b2', 'b1'], {
        move: {
          role: 'leader',
          from: 'b2',
          to: 'b3',
          step: 'staged',
          reason: 'balance',
          copied: true,
          drops: 'b2',
          startedAtMs: 0,
          progressAtMs: 0,
        },
        replicas: ['b2', 'b1', 'b3'],
        inSync: ['b2', 'b1'],
      }),
    ],
  };
  for (const command of importOf(rows)) node.plane.harness.ok(command);
  node.plane.serve('cluster.concerns', async () => concerns());
  node.plane.serve('placement.status', async () => ({
    paused: false,
    level: false,
    leaderMovesLeft: 1,
    movesInFlight: 1,
  }));
});
afterEach(() => node.stop());

/** What the leader knows of a cluster in which nothing is wrong. */
const concerns = (wrong: object = {}): object => ({
  nowMs: 1_000_000,
  blocked: { reasons: {}, example: null },
  stuck: { count: 0, longest: null },
  unheard: [],
  downAfterMs: 6_500,
  ...wrong,
});

const run = (line: string, options: CliOptions = {}): Promise<CliRun> =>
  runCli([...line.split(' '), '--endpoints', node.address], options);

describe('broker remove --down', () => {
  it('removes those that are gone and hold nothing, and says what it kept', async () => {
    const { harness } = node.plane;
    for (const id of ['b3', 'pod-1', 'pod-2', 'pod-3']) {
      if (id !== 'b3') harness.register(id);
      const incarnation = harness.state.brokers.get(id)?.incarnation ?? NaN;
      if (id !== 'pod-3')
        harness.ok({ type: 'setLifecycle', broker: id, incarnation, lifecycle: 'down', silentSinceMs: 0 });
    }
    expect(await run('broker remove --down')).toEqual({
      code: 0,
      out: '',
      note: 'kept b3: it still holds 3 copies\nremoved pod-1, pod-2\n',
    });
    expect([...harness.state.brokers.keys()].sort()).toEqual(['b1', 'b2', 'b3', 'pod-3']);
    expect((await run('broker remove --down')).note).toMatch(/removed no broker/);
  });

  it('wants a broker or --down, not both', async () => {
    for (const line of ['broker remove', 'broker remove b1 --down', 'broker remove --down --wait'])
      expect(await run(line)).toMatchObject({ code: 2, out: '' });
  });
});

describe('tables', () => {
  it.each([
    [
      'cluster status',
      `cluster test  revision 2  term 3  leader n1
placement not level  leader moves left 1  in flight 1
state 1 % full

ID  ADDRESS         ROLE    VOTER  READY  TERM  COMMIT  APPLIED
n1  127.0.0.1:7501  leader  yes    yes       3       2        2
`,
    ],
    [
      'broker list',
      `ID  ZONE  LIFECYCLE  DRAIN  LEADERS  COPIES  MAX  WEIGHT
b1  a     live       no           2       4    -       1
b2  -     live       no           1       2    9       2
b3  -     live       no           1       3    -       1
`,
    ],
    [
      'resource list',
      `KIND    NAME         SHARDS  RF  DURABLE  ZONE POLICY  LABELS
cache   kv                1   2  yes      zone         -
stream  perf-quorum       3   2  yes      -            team=x
`,
    ],
    [
      'cache list',
      `KIND   NAME  SHARDS  RF  DURABLE  ZONE POLICY  LABELS
cache  kv         1   2  yes      zone         -
`,
    ],
    [
      'shard list --resource perf-quorum',
      `SHARD                 LEADER  REPLICAS  IN SYNC  STATE   MOVE
stream:perf-quorum/0  b1      b1,b2     b1,b2    active  -
stream:perf-quorum/1  b1      b1,b3     b1,b3    active  -
stream:perf-quorum/2  b3      b3,b1     b3       active  -
`,
    ],
    [
      'shard list --leader b3 -o wide',
      `SHARD                 LEADER  REPLICAS  IN SYNC  STATE   MOVE  GENERATION  EPOCH  FAILED MOVES
stream:perf-quorum/2  b3      b3,b1     b3       active  -              7      5             0
`,
    ],
    [
      'move list -o wide',
      `SHARD       ROLE    FROM  TO  STEP    REASON   COPIES  DROPS  GENERATION
cache:kv/0  leader  b2    b3  staged  balance  yes     b2              1
`,
    ],
    [
      'placement levels',
      `cache:kv:b1=0,b2=1,b3=0
perf-quorum:b1=2,b2=0,b3=1

LEADERS      b1  b2  b3
cache:kv      0   1   0
perf-quorum   2   0   1
total         2   1   1
copies        4   2   3

leader spread: 2 at most per resource, 1 in total
copy spread: 2 at most per resource, 2 in total
`,
    ],
    [
      'placement replication',
      `RESOURCE     WANTED  HELD  IN SYNC  LEADERLESS  SHORT  LEADERS
cache:kv          2     3        2           0      0  cache:kv:b1=0,b2=1,b3=0
perf-quorum       6     6        5           0      1  perf-quorum:b1=2,b2=0,b3=1
`,
    ],
    [
      'member list',
      `ID  ADDRESS         VOTER
n1  127.0.0.1:7501  yes
`,
    ],
  ])('%s', async (line, expected) => {
    expect(await run(line)).toEqual({ code: 0, out: expected, note: '' });
  });

  it('cluster status marks a member that cannot be reached', async () => {
    node.plane.members = [...node.plane.members, { id: 'n2', address: '127.0.0.1:7502', voter: true }];
    const { out } = await run('cluster status');
    expect(out).toContain('n2  127.0.0.1:7502  unreachable  yes    no ');
    const { out: json } = await run('cluster status -o json');
    expect(JSON.parse(json)).toMatchObject({
      clusterId: 'test',
      members: [
        { id: 'n1', role: 'leader', hashAt: { index: 0 }, ready: true },
        { id: 'n2', role: 'unreachable', term: null, ready: false },
      ],
      placement: { paused: false, level: false, leaderMovesLeft: 1, movesInFlight: 1 },
    });
  });

  it('cluster health is exit 10 where anything needs a person', async () => {
    const { code, out } = await run('cluster health');
    expect(code).toBe(10);
    expect(out.split('\n')).toEqual([
      '[+] leader: n1 leads term 3',
      '[+] members: all 1 members are ready',
      '[+] hashes: members at equal indexes hold equal states',
      '[+] stateSize: the state takes 1 % of its 201326592 bytes',
      '[+] leaders: 0 shards without a serving leader',
      '[-] copies: 1 shards short of in-sync copies',
      '[+] brokers: no broker is missing',
      '[+] moves: no move keeps failing',
      '[+] paused: placement is not paused',
      '[+] placement: no shard waits for room or for a broker',
      'unhealthy',
      '',
    ]);
  });

  it('cluster health sees placement that cannot go on', async () => {
    const reasons = { no_destination: 1, no_room: 2 };
    const blocked = { reasons, example: 'stream:a/0: 2 copies' };
    node.plane.serve('cluster.concerns', async () => concerns({ blocked }));
    const { out } = await run('cluster health');
    expect(out).toContain(
      '[-] placement: shards that wait for room or a broker: 1 no_destination, 2 no_room; stream:a/0: 2 copies\n',
    );
  });

  it('cluster health names who is gone, since when, and what happens next', async () => {
    const { harness } = node.plane;
    const { timeMs } = harness.state;
    const down = { lifecycle: 'down', silentSinceMs: timeMs } as const;
    harness.ok({ type: 'setLifecycle', broker: 'b3', incarnation: 0, ...down });
    const nowMs = timeMs + 40_000;
    const unheard = [{ broker: 'b2', forMs: 5_000 }];
    node.plane.serve('cluster.concerns', async () => concerns({ nowMs, unheard }));
    const { code, out } = await run('cluster health');
    expect(code).toBe(10);
    expect(out).toContain(
      '[-] brokers: b3 down for 40 s, 3 copies are made elsewhere in 4 m 20 s unless it comes back; ' +
        'b2 not heard for 5 s, declared down in 1.5 s\n',
    );
    expect(out).toContain('[-] leaders: 1 shards without a serving leader\n');
    harness.ok({ type: 'setPolicy', expectedRevision: null, patch: { paused: true } });
    expect((await run('cluster health')).out).toMatch(
      /^\[-\] paused: placement is paused until evenkeel placement resume: restoring the copies of b3; levelling \d resources$/m,
    );
  });

  it('cluster health calls a shard unserved whose leader neither confirms nor drains', async () => {
    const { harness } = node.plane;
    harness.register('b1');
    const quiet = (await run('cluster health')).out;
    expect(quiet).toContain(
      '[+] leaders: 2 shards without a serving leader, 2 of them opening or being handed over\n',
    );
    const longest = { shard: 'stream:perf-quorum/0', forMs: 42_000 };
    node.plane.serve('cluster.concerns', async () => concerns({ stuck: { count: 2, longest } }));
    const { code, out } = await run('cluster health');
    expect(code).toBe(10);
    expect(out).toContain('2 for too long: stream:perf-quorum/0 waits for b1 to confirm for 42 s\n');
  });

  it('cluster health names a broker that shards are kept from, while their failed moves count', async () => {
    const { harness } = node.plane;
    const shard = 'stream:perf-quorum/0';
    const row = harness.state.assignments.get(shard);
    const atMs = harness.state.timeMs;
    if (row === undefined) throw new Error(`${shard} was imported`);
    const { leader, replicas, inSync, state } = row;
    const failures = [{ to: 'b3', times: 2, atMs }];
    const next = { leader, replicas, inSync, state, move: null, failedMoves: 0, failures };
    harness.place({ step: 'abandon', shard, next });
    node.plane.serve('cluster.concerns', async () => concerns({ nowMs: atMs + 3_599_999 }));
    const { out } = await run('cluster health');
    expect(out).toContain('[-] moves: 1 shards are kept from b3, where their moves failed; restart it');
    node.plane.serve('cluster.concerns', async () => concerns({ nowMs: atMs + 3_600_000 }));
    expect((await run('cluster health')).out).toContain('[+] moves: no move keeps failing');
  });

  it('cluster health sees members whose states differ at the same index', async () => {
    node.plane.members = [...node.plane.members, { id: 'n2', address: '127.0.0.1:7502', voter: true }];
    const own = node.plane.services.get('node.status');
    node.plane.onAskMember = async () => ({ ...((await own?.({})) as object), stateHash: 'deadbeef' });
    const { code, out } = await run('cluster health');
    expect(code).toBe(10);
    expect(out).toContain('[-] hashes: n2 holds another state than a member at the same index 2');
  });
});

describe('formats', () => {
  it('-o json is what the method answers', async () => {
    const { out } = await run('shard list --broker b2 -o json');
    const { revision, items, ...rest } = JSON.parse(out) as { revision: number; items: { shard: string }[] };
    expect(revision).toBe(2);
    expect(rest).toEqual({});
    expect(items.map(({ shard }) => shard)).toEqual(['cache:kv/0', 'stream:perf-quorum/0']);
    expect(items[1]).toEqual(assignmentRow('stream:perf-quorum/0', ['b1', 'b2']));
  });

  it('-o yaml is the same data', async () => {
    const yaml = await run('broker list -o yaml');
    const json = await run('broker list -o json');
    expect(parse(yaml.out)).toEqual(JSON.parse(json.out));
  });

  it('another format is a usage error', async () => {
    const { code, out, note } = await run('broker list -o xml');
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(note).toContain("'xml' is invalid");
  });
});

describe('writes', () => {
  it('say what was done on stderr, and with -o json what was answered on stdout', async () => {
    const plain = await run(
      'resource create orders --shards 4 --replication-factor 2 --label a=1 --label b=',
    );
    expect(plain).toEqual({ code: 0, out: '', note: 'created orders: 4 shards\n' });
    expect(node.plane.state.resources.get('stream:orders')).toMatchObject({
      shards: 4,
      replicationFactor: 2,
      durable: true,
      zonePolicy: null,
      labels: { a: '1', b: '' },
    });
    const json = await run('stream alter orders --label a- --label c=x=y --zone-policy zone -o json');
    expect(JSON.parse(json.out)).toMatchObject({ term: 3, leaderId: 'n1' });
    expect(node.plane.state.resources.get('stream:orders')).toMatchObject({
      zonePolicy: 'zone',
      labels: { b: '', c: 'x=y' },
    });
    expect((await run('stream alter orders --zone-policy default')).code).toBe(0);
    expect(node.plane.state.resources.get('stream:orders')?.zonePolicy).toBeNull();
    expect((await run('resource delete stream:orders')).note).toBe('deleted stream:orders\n');
  });

  it('cache and stream say the kind', async () => {
    await run('cache create sessions --shards 2 --ephemeral');
    expect(node.plane.state.resources.get('cache:sessions')).toMatchObject({ durable: false, shards: 2 });
    expect((await run('cache delete stream:sessions')).code).toBe(3);
    expect((await run('resource delete cache:sessions')).code).toBe(0);
  });

  it('carry a request of one session, so that they have one effect', async () => {
    await run('placement pause');
    const requests = node.plane.proposed.map(({ command, options }) => [command.type, options.request]);
    expect(requests[0]).toEqual(['openSession', undefined]);
    const [, second] = requests;
    expect(second?.[0]).toBe('setPolicy');
    expect(second?.[1]).toMatchObject({ n: 1 });
  });

  it('placement policy sets and shows', async () => {
    expect((await run('placement policy restoreAfterMs=5 paused=true maxMovesPerBroker=2')).code).toBe(0);
    expect(node.plane.state.policy).toMatchObject({ restoreAfterMs: 5, paused: true, maxMovesPerBroker: 2 });
    expect((await run('placement policy maxMovesPerBroker=null zonePolicy=majority')).code).toBe(0);
    expect((await run('placement policy')).out).toContain('zonePolicy              majority');
    expect((await run('placement policy pasued=true')).code).toBe(3);
    expect((await run('placement policy paused=maybe')).code).toBe(3);
    expect((await run('placement policy paused=true --expected-revision 1')).code).toBe(4);
  });

  it('broker drain, undrain and remove', async () => {
    expect((await run('broker drain b1')).note).toBe('draining b1\n');
    expect(node.plane.state.brokers.get('b1')).toMatchObject({ drain: true, lifecycle: 'draining' });
    expect((await run('broker undrain b1')).code).toBe(0);
    const refused = await run('broker remove b1');
    expect(refused.code).toBe(4);
    expect(refused.note).toContain('stream:perf-quorum/0');
  });

  /** Takes every resource away, once, when that holds. */
  function deleteAllWhen(holds: () => boolean): void {
    const { state, harness } = node.plane;
    const timer = setInterval(() => {
      if (!holds()) return;
      clearInterval(timer);
      for (const { kind, name } of [...state.resources.values()]) {
        harness.ok({ type: 'deleteResource', kind, name, expectedRevision: null });
      }
    }, 20);
  }

  it('broker remove --wait removes it once nothing names it', async () => {
    const { code, note } = await run('broker remove b2 --wait', {
      onStart: (_interrupt, seen) => deleteAllWhen(() => seen().note.includes('2 copies left')),
    });
    expect(code).toBe(0);
    expect(note.split('\n')).toEqual([
      'b2: 1 leader, 2 copies left',
      'b2: 0 leaders, 0 copies left',
      'removed b2',
      '',
    ]);
    const late = await run('broker remove b2 --wait');
    expect(late.code).toBe(3);
  });

  it('broker drain --wait follows it to the end and says what blocks it', async () => {
    node.plane.harness.ok({ type: 'setPolicy', expectedRevision: null, patch: { paused: true } });
    node.plane.serve('placement.plan', async () => ({
      steps: [],
      waiting: [
        { shard: 'cache:kv/0', reason: 'no_room', detail: '1 copy of room is missing' },
        { shard: 'stream:else/0', reason: 'other', detail: 'not of this broker' },
      ],
    }));
    const { code, note } = await run('broker drain b2 --wait', {
      onStart: (_interrupt, seen) => deleteAllWhen(() => seen().note.includes('waiting')),
    });
    expect(code).toBe(0);
    expect(note.split('\n')).toEqual([
      'draining b2',
      'b2: 1 leader, 2 copies left',
      '  placement is paused: no drain, rebalance or restore starts until `evenkeel placement resume`',
      '  1 waiting, no_room: 1 copy of room is missing',
      '  in all, room for 1 more copies is missing',
      'b2: 0 leaders, 0 copies left',
      '',
    ]);
  });

  it('broker drain --wait ends at its time-out and when interrupted; the drain goes on', async () => {
    const late = await run('broker drain b2 --wait --wait-timeout 1ms');
    expect(late.code).toBe(124);
    expect(late.note).toContain('it goes on draining');
    const interrupted = await run('broker drain b2 --wait', {
      onStart: (interrupt, seen) => {
        const timer = setInterval(() => {
          if (!seen().note.includes('copies left')) return;
          clearInterval(timer);
          interrupt();
        }, 5);
      },
    });
    expect(interrupted.code).toBe(4);
    expect(node.plane.state.brokers.get('b2')?.drain).toBe(true);
  });

  it('move start says what it does; a dry run is no write', async () => {
    const asked: unknown[] = [];
    node.plane.serve('move.start', async (params) => {
      asked.push(params);
      const facts = { copies: true, drops: 'b1', zonesBefore: 2, zonesAfter: 1 };
      return { ...(params as object), from: 'b1', ...facts, revision: 9 };
    });
    const dry = await run('move start perf-quorum/0 --to b3 --dry-run');
    expect(dry.out).toBe(
      'would move the leader of stream:perf-quorum/0 from b1 to b3: the data is copied, b1 drops its copy, zones 2 -> 1\n',
    );
    expect(node.plane.proposed).toEqual([]);
    const real = await run('move start cache:kv/0 --role follower --from b1 --to b3 --expected-generation 4');
    expect(real.out).toMatch(/^moving the follower of cache:kv\/0 from b1 to b3/);
    expect(asked[1]).toMatchObject({
      shard: 'cache:kv/0',
      role: 'follower',
      from: 'b1',
      expectedGeneration: 4,
      dryRun: false,
      request: { n: 1 },
    });
    expect((await run('move start perf-quorum/0 --role follower --to b3')).code).toBe(3);
    node.plane.serve('move.start', async () => {
      throw new EvenkeelError('refused', 'b3 is at its cap of 2 copies');
    });
    const refused = await run('move start perf-quorum/0 --to b3');
    expect(refused).toEqual({ code: 4, out: '', note: 'error: b3 is at its cap of 2 copies (refused)\n' });
  });

  it('move cancel and shard abandon', async () => {
    node.plane.serve('move.cancel', async (params) => ({ ...(params as object), detail: 'b3 is dropped' }));
    expect((await run('move cancel cache:kv/0')).note).toBe(
      'cancelled the move of cache:kv/0: b3 is dropped\n',
    );
    node.plane.serve('shard.abandon', async (params) => params);
    expect((await run('shard abandon cache:kv/0 --expected-generation 1')).code).toBe(0);
  });

  it('raft transfer says who leads, and knows its own work where the first answer was lost', async () => {
    node.plane.serve('raft.transfer', async () => ({ from: 'n2', to: 'n1', term: 4 }));
    expect(await run('raft transfer')).toMatchObject({
      code: 0,
      out: '',
      note: 'n1 leads term 4 instead of n2\n',
    });
    const refused = new EvenkeelError('refused', 'n1 leads already');
    let lost = 1;
    node.plane.serve('raft.transfer', async () => {
      lost -= 1;
      throw lost < 0 ? refused : new EvenkeelError('outcome_unknown', 'the connection was lost');
    });
    expect(await run('raft transfer n1')).toMatchObject({ code: 0, note: 'n1 leads\n' });
    expect(await run('raft transfer n1')).toMatchObject({
      code: 4,
      note: 'error: n1 leads already (refused)\n',
    });
    lost = 1;
    // Another leads than was asked for: that is no success of ours.
    expect((await run('raft transfer n2')).code).toBe(4);
  });

  it('shard show and explain say why', async () => {
    node.plane.serve('shard.explain', async () => null);
    expect((await run('shard explain perf-quorum/9')).code).toBe(3);
    expect((await run('shard show perf-quorum/2')).out).toContain(
      'imported: no decision of this cluster placed it',
    );
    const why = {
      rule: 'floor',
      detail: 'b3 leads 1 of 3, its floor is 1',
      rejected: [{ broker: 'b2', by: 'cap' }],
      runnerUp: 'b1',
    };
    const shown = await node.call('shard.show', { shard: 'stream:perf-quorum/0' });
    const assignment = shown.result?.['assignment'] as Assignment;
    const lagging = { assignment: { ...assignment, replicas: ['b1', 'b2'], inSync: ['b1'] } };
    node.plane.serve('shard.explain', async (params) => ({
      ...(params as object),
      place: ['b1 leads and serves it: it leads 2 of stream:perf-quorum'],
      next: [{ step: 'stage', role: 'leader', from: 'b1', to: 'b3', reason: 'balance', why }],
      waiting: [{ reason: 'slot', detail: 'one copy is under way' }],
      offsets: { leaderOffset: 4_000, followers: { b1: 4_000, b2: 1_050 } },
      ...lagging,
    }));
    const { out } = await run('shard explain perf-quorum/0');
    expect(out.split('\n').slice(3)).toEqual([
      'imported: no decision of this cluster placed it',
      'b1 leads and serves it: it leads 2 of stream:perf-quorum',
      'b2 has 1050 of 4000 records',
      'next pass: stage b1 -> b3 (balance, floor): b3 leads 1 of 3, its floor is 1',
      '  not b2: cap',
      '  runner-up b1',
      'waiting: slot: one copy is under way',
      '',
    ]);
  });
});

describe('exit codes', () => {
  it.each([
    ['resource show nobody', 3],
    ['resource show a//b', 3],
    ['resource create perf-quorum --shards 3', 4],
    ['resource create x', 2],
    ['resource create x --shards many', 2],
    ['resource create x --shards 3 --label novalue', 2],
    ['resource create x --shards 3 --zone-policy rack', 2],
    ['resource create x --shards 0', 3],
    ['resource alter perf-quorum', 3],
    ['resource frobnicate', 2],
    ['broker drain', 2],
    ['broker drain b1 b2', 2],
    ['broker drain b9', 3],
    ['move start perf-quorum/0', 2],
    ['move start perf-quorum/0 --to b1 --role boss', 2],
    ['shard show perf-quorum', 3],
    ['import', 2],
    ['import -f nowhere.json', 3],
    ['broker list --timeout soon', 2],
  ])('%s is %i', async (line, code) => {
    const { code: got, out, note } = await run(line);
    expect(got).toBe(code);
    expect(out).toBe('');
    expect(note).toMatch(/error/i);
  });

  it('no leader is 5, at the end of the time-out', async () => {
    node.plane.leaderId = null;
    node.plane.onBarrier = async () => {
      throw new EvenkeelError('no_leader', 'no leader is known');
    };
    const { code, note } = await run('broker list --timeout 200ms');
    expect(code).toBe(5);
    expect(note).toBe('error: no leader is known (no_leader)\n');
    expect((await run('cluster status')).code).toBe(0);
    expect((await run('cluster health')).code).toBe(10);
  });

  it('nobody there is 5, at once', async () => {
    const { address } = node;
    await node.stop();
    const { code, note } = await runCli(['broker', 'list'], { env: { EVENKEEL_ENDPOINTS: address } });
    expect(code).toBe(5);
    expect(note).toContain(`cannot reach ${address}`);
  });

  it('a write whose outcome nobody knows is 124', async () => {
    node.plane.onPropose = async (command) => {
      if (command.type !== 'openSession') await new Promise(() => undefined);
    };
    const { code, note } = await run('placement pause --timeout 200ms');
    expect(code).toBe(124);
    expect(note).toContain('outcome unknown');
  });

  it('help is 0 and goes to stdout, no command is 2', async () => {
    const help = await runCli(['broker', '--help']);
    expect(help.code).toBe(0);
    expect(help.out).toContain('drain [options] <id>');
    expect((await runCli([])).code).toBe(2);
    expect((await runCli(['nonsense'])).code).toBe(2);
  });
});

describe('endpoints', () => {
  it('are tried in turn, from the option or the environment', async () => {
    const dead = '127.0.0.1:1';
    const given = await runCli(['raft', 'status', '--endpoints', `${dead},${node.address}`]);
    expect(given.code).toBe(0);
    expect(given.out).toContain('node n1  role leader  term 3');
    const env = { EVENKEEL_ENDPOINTS: `${dead}, ${node.address}` };
    expect((await runCli(['raft', 'status'], { env })).code).toBe(0);
  });
});

describe('watch', () => {
  it('prints a line a change until interrupted', async () => {
    const { code, out } = await run('watch --from-revision 2', {
      onStart: (interrupt, seen) => {
        node.plane.harness.create('later');
        const timer = setInterval(() => {
          if (seen().out.split('\n').length < 3) {
            if (!node.plane.state.brokers.get('b1')?.drain && seen().out !== '') {
              node.plane.harness.ok({ type: 'setDrain', broker: 'b1', drain: true });
            }
            return;
          }
          clearInterval(timer);
          interrupt();
        }, 5);
      },
    });
    expect(code).toBe(0);
    const lines = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    expect(lines).toMatchObject([
      { revision: 3, kind: 'resource', resource: { name: 'later' } },
      { revision: 4, kind: 'broker', broker: { id: 'b1', drain: true } },
    ]);
  });
});
