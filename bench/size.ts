/**
 * A quorum of three real processes that holds 100,000 shards: created, rewritten by a broker that registers anew, snapshotted
 * on every member, its members restarted one by one and all at once, levelled after a broker joined. Prints the table of
 * docs/benchmarks.md: for each phase how long, the term before and after, and for the nodes the event loop's delay
 * (p99.9 and longest, by their own metrics, since the phase or the process began) and resident memory.
 *   npm run bench:size -- [--brokers 100] [--streams 8000] [--caches 4000] [--election-timeout-ms 1000] [--join-s 400]
 */
import { parseArgs } from 'node:util';
import { Cluster, rpc, until } from '../tests/support/cluster.ts';
import {
  createAll,
  joinBrokers,
  metricsOf,
  residentMib,
  settled,
  shardsOf,
  type LightBroker,
} from '../tests/support/sized-cluster.ts';

const { values } = parseArgs({
  options: {
    brokers: { type: 'string', default: '100' },
    streams: { type: 'string', default: '8000' },
    caches: { type: 'string', default: '4000' },
    'election-timeout-ms': { type: 'string', default: '1000' },
    'join-s': { type: 'string', default: '400' },
  },
});
const layout = {
  brokers: Number(values.brokers),
  streams: Number(values.streams),
  caches: Number(values.caches),
};
const NODES = [0, 1, 2];
const BOUND_MS = 900_000;
/** The most that the policy takes: brokers that hold no data copy at once. */
const SLOTS = 1_000;

const cluster = await Cluster.start({
  flags: ['--election-timeout-ms', values['election-timeout-ms']],
});
const brokers: LightBroker[] = [];

async function phase(name: string, run: () => Promise<unknown>): Promise<void> {
  const before = await cluster.status();
  // Each scrape begins the figures of the event loop anew.
  await Promise.all(NODES.map((node) => metricsOf(cluster, node)));
  const began = performance.now();
  await run();
  const seconds = ((performance.now() - began) / 1_000).toFixed(1);
  const { term, leaderId } = await cluster.status();
  const nodes = await Promise.all(
    NODES.map(async (node) => {
      const figures = await metricsOf(cluster, node);
      const delay = (quantile: string): string =>
        ((figures.get(`evenkeel_event_loop_delay_seconds{quantile="${quantile}"}`) ?? 0) * 1_000).toFixed(0);
      const text = `${delay('0.999')}, ${delay('1')}, ${residentMib(cluster, node)}`;
      return { leads: leaderId === `n${node + 1}`, text };
    }),
  );
  const leader = nodes.find(({ leads }) => leads)?.text ?? '';
  const followers = nodes.filter(({ leads }) => !leads).map(({ text }) => text);
  console.log(`| ${name} | ${seconds} | ${before.term} → ${term} | ${leader} | ${followers.join(' / ')} |`);
}

async function ready(nodes: readonly number[]): Promise<void> {
  await until(
    'them to be ready',
    async () => {
      const answers = nodes.map((node) => fetch(`http://${cluster.address(node)}/readyz`));
      return (await Promise.all(answers)).every(({ ok }) => ok);
    },
    BOUND_MS,
  );
}

async function restart(nodes: readonly number[]): Promise<void> {
  for (const node of nodes) await cluster.killNode(node);
  await Promise.all(nodes.map((node) => cluster.startNode(node)));
  await ready(nodes);
}

async function joinOneMore(): Promise<void> {
  brokers.push(...(await joinBrokers(cluster, layout.brokers + 1, layout.brokers + 1)));
  await until('its first moves', async () => (await cluster.status()).placement.movesInFlight > 0, BOUND_MS);
  try {
    await settled(cluster, Number(values['join-s']) * 1_000);
  } catch {
    const { placement } = await cluster.status();
    console.log(
      `not levelled within ${values['join-s']} s: ${placement.movesInFlight} moves in flight, ${placement.leaderMovesLeft} leaderships left`,
    );
  }
}

try {
  await rpc(cluster.address(await cluster.leader()), 'placement.policy.set', {
    maxConcurrentMoves: SLOTS,
    maxConcurrentHandovers: SLOTS,
  });
  console.log(
    '| phase | took, s | term | leader: p99.9 ms, longest ms, resident MiB | followers: the same |\n| --- | ---: | ---: | ---: | ---: |',
  );
  brokers.push(...(await joinBrokers(cluster, 1, layout.brokers)));
  const shards = shardsOf(layout).toLocaleString('en');
  await phase(
    `${shards} shards of ${layout.streams + layout.caches} resources created and opened`,
    async () => {
      await createAll(cluster, layout);
      await settled(cluster, BOUND_MS);
    },
  );
  await phase('settled, 10 s', () => new Promise((resolve) => setTimeout(resolve, 10_000)));
  await phase('one broker registers anew', async () => {
    const [first] = brokers.splice(0, 1);
    first?.stop();
    brokers.push(...(await joinBrokers(cluster, 1, 1)));
    await settled(cluster, BOUND_MS);
  });
  await phase('a snapshot on every member', () =>
    Promise.all(
      NODES.map((node) => rpc(cluster.address(node), 'raft.snapshot', { deadlineMs: 60_000 }, 60_000)),
    ),
  );
  const leader = await cluster.leader();
  const [second = 0, third = 0] = NODES.filter((node) => node !== leader);
  await phase('a follower killed, started and ready', () => restart([second]));
  await phase('the other follower', () => restart([third]));
  await phase('the leader', () => restart([leader]));
  await phase('all three', () => restart(NODES));
  await phase('settled again', () => settled(cluster, BOUND_MS));
  await phase('one more broker joins and is given its part', joinOneMore);
  console.log(`\none hash: ${await cluster.sameHash()}`);
} finally {
  for (const broker of brokers) broker.stop();
  await cluster.stop();
}
