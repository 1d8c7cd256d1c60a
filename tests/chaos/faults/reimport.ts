import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ClusterFile } from '../../../placement/index.ts';
import type { Fault, Round } from '../round.ts';
import { brokerNamed } from './crash.ts';

const MONTH_MS = 30 * 24 * 3_600_000;

/**
 * A cluster is exported and imported over itself, as it is or with the times of a month ahead, then as of a month
 * ago. After that a leading broker is killed: silence must be noticed in the new cluster time too.
 */
export const reimport: Fault = {
  name: 'import',
  async play(round) {
    const { rig, load, ledger, health, dice, note } = round;
    const shifts = dice.pick([[0], [MONTH_MS], [MONTH_MS, 0]]);
    note(`imported with times moved by ${shifts.join(' ms, then ')} ms`);
    // An import takes effect at once, so an operator stops the clients first.
    await load.stop();
    await rig.inSync();
    const { code, stdout, stderr } = await rig.cluster.cli('export');
    if (code !== 0) throw new Error(`export ended with ${code}: ${stderr}`);
    for (const byMs of shifts) await importOver(round, moved(JSON.parse(stdout) as ClusterFile, byMs));
    ledger.forget();
    await rig.inSync();
    load.start();
    await load.progress(2);
    const { leader } = dice.pick(await rig.rows());
    note(`${leader} killed`);
    await rig.broker(leader).kill();
    await health.names(brokerNamed(leader));
    await load.progress(2);
    await rig.startBroker(leader);
  },
};

async function importOver({ rig, fail }: Round, file: ClusterFile): Promise<void> {
  const path = join(rig.cluster.directory, 'import.json');
  await writeFile(path, JSON.stringify(file));
  const { code, stderr } = await rig.cluster.cli('import', '-f', path, '--overwrite');
  if (code !== 0) fail(`import ended with ${code}: ${stderr}`);
}

function moved(file: ClusterFile, byMs: number): ClusterFile {
  return {
    ...file,
    ...(file.timeMs === undefined ? {} : { timeMs: file.timeMs + byMs }),
    brokers: file.brokers.map((broker) => ({ ...broker, registeredAtMs: broker.registeredAtMs + byMs })),
  };
}
