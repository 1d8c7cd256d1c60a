/**
 * Time from kill -9 (or SIGSTOP) of the Raft leader to the next acknowledged write through another node.
 *   npm run bench:failover -- [--rounds 10] [--signal SIGKILL|SIGSTOP]
 */
import { parseArgs } from 'node:util';
import { Cluster, rpc, until } from '../tests/support/cluster.ts';
import { median } from './support.ts';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '10' }, signal: { type: 'string', default: 'SIGKILL' } },
});
const signal = values.signal as NodeJS.Signals;

const cluster = await Cluster.start();
try {
  const times: number[] = [];
  await rpc(cluster.address(0), 'resource.create', {
    kind: 'cache',
    name: 'probe',
    shards: 1,
    replicationFactor: 1,
  });
  for (let round = 0; round < Number(values.rounds); round++) {
    const leader = await cluster.leader();
    await cluster.sameHash();
    const other = cluster.address((leader + 1) % 3);
    const process = cluster.nodes[leader];
    process?.child.kill(signal);
    const killed = performance.now();
    let acknowledged = false;
    while (!acknowledged) {
      acknowledged = await rpc(
        other,
        'resource.alter',
        { kind: 'cache', name: 'probe', labels: { round: String(round) }, deadlineMs: 250 },
        1_000,
      ).then(
        () => true,
        () => false,
      );
    }
    times.push(performance.now() - killed);
    if (signal === 'SIGKILL') {
      await process?.exited;
      await cluster.startNode(leader);
    } else {
      process?.child.kill('SIGCONT');
    }
    await until('three ready members', async () => {
      const { members } = await cluster.status();
      return members.filter((member) => member.ready).length === 3;
    });
  }
  const sorted = [...times].sort((a, b) => a - b).map((ms) => Math.round(ms));
  console.log(`${signal}: median ${Math.round(median(times))} ms, all ${sorted.join(' ')}`);
} finally {
  await cluster.stop();
}
