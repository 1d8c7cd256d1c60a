/**
 * A quorum of three real processes that holds 100,000 shards: created, levelled after a broker joined, rewritten by a
 * broker that registers anew, restarted. For each phase: how long, the term before and after, and for
 * each node the event loop's delay (p99.9 and longest, by its own metrics) and resident memory.
 *   npm run bench:size -- [--brokers 100] [--streams 8000] [--caches 4000] [--election-timeout-ms 1000]
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
  },
});
const layout = {
  brokers: Number(values.brokers),
  streams: Number(values.streams),
  caches: Number(values.caches),
};
const shards = shardsOf(layout);
const BOUND_MS = 900_000;

const cluster = await Cluster.start({
  flags: ['--election-timeout-ms', values['election-timeout-ms']],
});
const brokers: LightBroker[] = [];

async function phase(name: string, run: () => Promise<unknown>): Promise<void> {
  const before = await cluster.status();
  await Promise.all([0, 1, 2].map((node) => metricsOf(cluster, node)));
  const began = performance.now();
  await run();
  const seconds = ((performance.now() - began) / 1_000).toFixed(1);
  const after = await cluster.status();
  console.log(`\n${name}: ${seconds} s, term ${before.term} -> ${after.term}, leader ${after.leaderId}`);
  for (const node of [0, 1, 2]) {
    const figures = await metricsOf(cluster, node);
    const delay = (quantile: string): string =>
      ((figures.get(`evenkeel_event_loop_delay_seconds{quantile="${quantile}"}`) ?? 0) * 1_000).toFixed(1);
    const role = after.leaderId === `n${node + 1}` ? 'leader' : 'follower';
    console.log(
      `  n${node + 1} ${role.padEnd(8)} loop delay p99.9 ${delay('0.999').padStart(6)} ms, longest ${delay('1').padStart(7)} ms,` +
        ` RSS ${residentMib(cluster, node)} MiB, applied ${figures.get('evenkeel_raft_applied_index')}`,
    );
  }
}

try {
  await rpc(cluster.address(await cluster.leader()), 'placement.policy.set', {
    maxConcurrentMoves: 400,
    maxConcurrentHandovers: 400,
  });
  await phase(`${layout.brokers} brokers join`, async () => {
    brokers.push(...(await joinBrokers(cluster, 1, layout.brokers)));
  });
  await phase(
    `${layout.streams + layout.caches} resources, ${shards} shards created and placed`,
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
  await phase('one more broker joins: levelled', async () => {
    brokers.push(...(await joinBrokers(cluster, layout.brokers + 1, layout.brokers + 1)));
    await until('the newcomer to lead its part', async () => {
      const { placement } = await cluster.status();
      return placement.movesInFlight > 0;
    });
    await settled(cluster, BOUND_MS);
  });
  await phase('a follower restarts', async () => {
    const node = ((await cluster.leader()) + 1) % 3;
    await cluster.killNode(node);
    await cluster.startNode(node);
    await until(
      'it to be ready',
      async () => (await fetch(`http://${cluster.address(node)}/readyz`)).ok,
      BOUND_MS,
    );
  });
  const began = performance.now();
  for (const node of [0, 1, 2]) await cluster.killNode(node);
  await Promise.all([0, 1, 2].map((node) => cluster.startNode(node)));
  await until('all ready', async () =>
    (await Promise.all([0, 1, 2].map((node) => fetch(`http://${cluster.address(node)}/readyz`)))).every(
      ({ ok }) => ok,
    ),
  );
  console.log(
    `\nall three killed and started: ready after ${((performance.now() - began) / 1_000).toFixed(1)} s`,
  );
  await phase('settled again', () => settled(cluster, BOUND_MS));
  await phase('10 s more', () => new Promise((resolve) => setTimeout(resolve, 10_000)));
  console.log(`\none hash: ${await cluster.sameHash()}`);
} finally {
  for (const broker of brokers) broker.stop();
  await cluster.stop();
}
