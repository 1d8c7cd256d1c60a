import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Cluster, rpc, until } from '../support/cluster.ts';
import {
  createAll,
  joinBrokers,
  metricsOf,
  settled,
  shardsOf,
  type LightBroker,
} from '../support/sized-cluster.ts';

/** `npm run bench:size` does the same with a hundred thousand shards. */
const LAYOUT = { brokers: 12, streams: 150, caches: 100 };
const SHARDS = shardsOf(LAYOUT);
const BOUND_MS = 90_000;

describe('a quorum that holds many shards', () => {
  let cluster: Cluster;
  const brokers: LightBroker[] = [];

  beforeAll(async () => {
    // Long enough that only a member that is held up by its own work, not by this machine's, would be deposed.
    cluster = await Cluster.start({ flags: ['--election-timeout-ms', '4000'] });
    brokers.push(...(await joinBrokers(cluster, 1, LAYOUT.brokers)));
  });

  afterAll(async () => {
    for (const broker of brokers) broker.stop();
    await cluster.stop();
  });

  it('creates, levels and restarts them without an election of its own making', async () => {
    const { term } = await cluster.status();
    const policy = { maxConcurrentMoves: 100, maxConcurrentHandovers: 100 };
    await rpc(cluster.address(0), 'placement.policy.set', policy);
    await createAll(cluster, LAYOUT);
    await settled(cluster, BOUND_MS);
    brokers.push(...(await joinBrokers(cluster, LAYOUT.brokers + 1, LAYOUT.brokers + 1)));
    await until('the newcomer to be given its part', async () => {
      const { placement } = await cluster.status();
      return placement.movesInFlight > 0;
    });
    await settled(cluster, BOUND_MS);
    const leader = await cluster.leader();
    const figures = await metricsOf(cluster, leader);
    expect(figures.get('evenkeel_state_assignments')).toBe(SHARDS);
    expect(figures.get('evenkeel_placement_max_leader_spread_per_resource')).toBe(1);
    expect(figures.get('evenkeel_placement_leader_spread_total')).toBeLessThanOrEqual(1);
    expect(figures.get('evenkeel_placement_minimum_leader_moves')).toBe(0);

    const follower = (leader + 1) % 3;
    await cluster.killNode(follower);
    await cluster.startNode(follower);
    await until('it to be ready', async () => (await fetch(`http://${cluster.address(follower)}/readyz`)).ok);
    await cluster.sameHash();
    expect((await cluster.status()).term).toBe(term);
  });

  it('comes back whole after all three were killed', async () => {
    for (const node of [0, 1, 2]) await cluster.killNode(node);
    await Promise.all([0, 1, 2].map((node) => cluster.startNode(node)));
    await settled(cluster, BOUND_MS);
    await cluster.sameHash();
  });
});
