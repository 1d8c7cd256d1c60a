import { createHash } from 'node:crypto';
import { isMainThread, parentPort } from 'node:worker_threads';
import fc from 'fast-check';
import { operator, plan, simulate } from '../../../placement/index.ts';
import { randomCluster } from './random-cluster.ts';
import { NO_REPORTS, snapshot } from './rows.ts';

const SHAPE = {
  ...{ brokers: 14, resources: 5, shards: 12, weights: true, zones: true, caps: true, troubles: true },
  ...{ outOfSync: true, ephemeral: true, skewed: true, fresh: true },
};

/** Of the plans of many clusters, and of all that comes of some of them. */
export function digestOfPlans(clusters: number, seed: number): string {
  const hash = createHash('sha256');
  fc.sample(randomCluster(SHAPE), { seed, numRuns: clusters }).forEach((file, i) => {
    hash.update(JSON.stringify(plan(snapshot(file), NO_REPORTS)));
    if (i % 10 !== 0) return;
    hash.update(JSON.stringify(simulate(file, { events: [], maxPasses: 4_000 }, { plan, ...operator })));
  });
  return hash.digest('hex');
}

/** Run on its own, as a process or a thread, it answers the digest of what its arguments ask for. */
if (process.argv[2] === 'digest') {
  const digest = digestOfPlans(Number(process.argv[3]), Number(process.argv[4]));
  if (isMainThread) process.stdout.write(digest);
  else parentPort?.postMessage(digest, []);
}
