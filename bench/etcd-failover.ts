/**
 * `bench/failover.ts` on three etcd processes: time from kill -9 (or SIGSTOP) of the leader to the next acknowledged
 * put through another member. etcd's own defaults are an election time-out of 1,000 ms and heartbeats of 100 ms.
 *   npm run bench:etcd-failover -- [--rounds 10] [--signal SIGKILL|SIGSTOP]
 */
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { etcdIsInstalled, EtcdGroup, put } from './etcd-group.ts';
import { median } from './support.ts';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '10' }, signal: { type: 'string', default: 'SIGKILL' } },
});
const signal = values.signal as NodeJS.Signals;
const TRY_MS = 250;

if (!etcdIsInstalled()) process.exit(0);
const group = await EtcdGroup.start(['--election-timeout', '1000', '--heartbeat-interval', '100']);
try {
  const times: number[] = [];
  for (let round = 0; round < Number(values.rounds); round++) {
    await group.ready();
    const leader = await group.leader();
    const session = group.connect((leader + 1) % 3);
    await put(session, 'probe', Buffer.from('before'), 10_000);
    const child = group.children[leader];
    child?.kill(signal);
    const killed = performance.now();
    let acknowledged = false;
    while (!acknowledged) {
      acknowledged = await put(session, 'probe', Buffer.from(String(round)), TRY_MS).then(
        () => true,
        () => false,
      );
    }
    times.push(performance.now() - killed);
    session.destroy();
    if (signal === 'SIGKILL') {
      if (child !== undefined && child.signalCode === null) await once(child, 'exit');
      group.startMember(leader);
    } else {
      child?.kill('SIGCONT');
    }
  }
  const sorted = [...times].sort((a, b) => a - b).map((ms) => Math.round(ms));
  console.log(`etcd, ${signal}: median ${Math.round(median(times))} ms, all ${sorted.join(' ')}`);
} finally {
  group.stop();
}
