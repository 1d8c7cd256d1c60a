import { describe, expect, it } from 'vitest';
import { rpc, until } from '../support/cluster.ts';
import { clusterFile, skewed } from '../support/layouts.ts';
import { Stage } from '../support/stage.ts';

/** Silence is a subject here. Long enough for a busy machine's heartbeats, four a second. */
const FLAGS = ['--expiry-ms', '5000', '--lease-ms', '4000', '--margin-ms', '500'];
/** What a test holds back must not run into a time-out, however slow the machine. */
const PATIENT = { fenceTimeoutMs: 3_600_000, moveStallMs: 3_600_000, moveTimeoutMs: 7_200_000 };

type Figures = Readonly<Record<string, number>>;

describe('/metrics of a real quorum', () => {
  const stage = new Stage();
  const three = ['b1', 'b2', 'b3'];
  const rows = () => [...stage.watcher.rows.values()];

  /** Figures by name and labels, without `evenkeel_` and the node's own label. */
  async function scrape(node: number): Promise<Figures> {
    const text = await (await fetch(`http://${stage.cluster.address(node)}/metrics`)).text();
    const figures: Record<string, number> = {};
    for (const [, name = '', labels = '', value] of text.matchAll(/^evenkeel_(\w+)\{(.*)\} (\S+)$/gm)) {
      const own = labels.split(',').filter((label) => !label.startsWith('node='));
      figures[own.length === 0 ? name : `${name}{${own.join(',')}}`] = Number(value);
    }
    return figures;
  }

  /** Waits until every node shows these; one that is not shown at all counts as `undefined`. */
  async function everywhere(figures: Readonly<Record<string, number | undefined>>): Promise<void> {
    for (const node of [0, 1, 2]) await shown(node, figures);
  }

  async function shown(node: number, figures: Readonly<Record<string, number | undefined>>): Promise<void> {
    await until(JSON.stringify(figures), async () => {
      const now = await scrape(node);
      const wrong = Object.entries(figures).filter(
        ([name, value]) => !Object.is(now[`placement_${name}`], value),
      );
      if (wrong.length === 0) return true;
      throw new Error(
        `n${node + 1}: ${wrong.map(([name]) => `${name} is ${now[`placement_${name}`]}`).join(', ')}`,
      );
    });
  }

  const leader = (): Promise<number> => stage.cluster.leader();

  it('tells a skew from level, and the moves that are left', async () => {
    const skew = skewed({
      name: 's',
      brokers: three,
      leaders: [4, 2, 0],
      replicationFactor: 2,
      among: ['b1', 'b2'],
    });
    const level = skewed({ name: 't', brokers: three, leaders: [1, 1, 1], replicationFactor: 3 });
    await stage.set(clusterFile(three, [skew, level], { paused: true }), { flags: FLAGS });
    await everywhere({
      ...{ paused: 1, max_leader_spread_per_resource: 4, resources_out_of_level: 1 },
      ...{ leader_spread_total: 4, copy_spread_total: 6, leaderless: 0, under_replicated: 0 },
    });
    await shown(await leader(), { minimum_leader_moves: 2 });
    await rpc(stage.cluster.address(0), 'placement.resume');
    await stage.level();
    await everywhere({
      ...{ paused: 0, max_leader_spread_per_resource: 0, resources_out_of_level: 0 },
      ...{ leader_spread_total: 0, copy_spread_total: 0, leaderless: 0, under_replicated: 0 },
    });
    const node = await leader();
    await shown(node, { minimum_leader_moves: 0, 'steps_total{step="cutOver",reason="balance"}': 2 });
    const figures = await scrape(node);
    expect(figures['placement_passes_total']).toBeGreaterThan(0);
    expect(figures['placement_failed_passes_total']).toBe(0);
    expect(figures['placement_last_pass_seconds']).toBeGreaterThan(0);
    // Counted from one scrape to the next.
    await until(
      'a delay',
      async () => ((await scrape(node))['event_loop_delay_seconds{quantile="0.999"}'] ?? 0) > 0,
    );
  });

  it('follows a drain that lacks room, a broker that dies and the last copy of a shard, and a change of leader', async () => {
    const small = skewed({ name: 's', brokers: three, leaders: [2, 2, 2], replicationFactor: 2 });
    const policy = { ...PATIENT, maxConcurrentMoves: 2, restoreAfterMs: 3_600_000 };
    await stage.set(clusterFile(three, [small], policy), { flags: FLAGS, caps: { b1: 5, b3: 5 } });
    await stage.level();
    for (const broker of stage.brokers.values()) broker.hold.copy = true;
    await rpc(stage.cluster.address(0), 'broker.drain', { id: 'b2' });
    // Two of its four copies find room, and are held where they are.
    const joining = 'moves_in_flight{step="joining",reason="drain"}';
    await everywhere({ [joining]: 2, under_replicated: 0, leaderless: 0 });
    await shown(await leader(), {
      'waiting{reason="no_room"}': 2,
      'steps_total{step="join",reason="drain"}': 2,
    });
    stage.release();
    await everywhere({ [joining]: undefined });
    await shown(await leader(), {
      'steps_total{step="seat",reason="drain"}': 2,
      'waiting{reason="no_room"}': 2,
    });
    expect((await scrape(0))['state_brokers{lifecycle="draining"}']).toBe(1);

    // The planner moves to another node: what it knows is told there, and here no more.
    const old = await leader();
    const { to } = await rpc<{ to: string }>(stage.cluster.address(0), 'raft.transfer');
    const next = Number(to.slice(1)) - 1;
    // While a cap stands in the way no fewest number of moves is claimed.
    await shown(next, { 'waiting{reason="no_room"}': 2, minimum_leader_moves: Number.NaN });
    await shown(old, { 'waiting{reason="no_room"}': undefined });

    await rpc(stage.cluster.address(0), 'broker.undrain', { id: 'b2' });
    await stage.level();
    await shown(next, { minimum_leader_moves: 0 });
    await shown(old, { minimum_leader_moves: Number.NaN });
    const led = rows().filter((row) => row.leader === 'b3').length;
    const held = rows().filter(({ replicas }) => replicas.includes('b3')).length;
    expect(led).toBe(2);
    stage.kill('b3');
    await everywhere({ under_replicated: held, leaderless: 0 });
    await shown(next, {
      'steps_total{step="promote",reason="failover"}': led,
      'unplaceable{reason="only_copy_unavailable"}': undefined,
    });

    const last = rows().filter(({ inSync }) => inSync.length === 1 && inSync[0] === 'b1').length;
    expect(last).toBeGreaterThan(0);
    stage.kill('b1');
    await everywhere({ leaderless: last });
    await shown(next, { 'unplaceable{reason="only_copy_unavailable"}': last });
    expect((await scrape(next))['state_brokers{lifecycle="down"}']).toBe(2);
  });
});
