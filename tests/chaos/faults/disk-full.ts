import { execFile } from 'node:child_process';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { until } from '../../support/cluster.ts';
import { BROKERS } from '../rig.ts';
import type { Fault } from '../round.ts';
import { comesBack, endsItself } from './crash.ts';

const run = promisify(execFile);
const MAX_ROOM_BYTES = 20_000;
const MAX_FULL_MS = 300;
const FULL_WITHIN_MS = 30_000;

/**
 * A broker's files may grow by a few more bytes, so that some append has no room, or half of it; then there is room
 * again. Every broker is killed at the end: what is on the disks has to be enough.
 */
export const diskFull: Fault = {
  name: 'disk-full',
  async play(round) {
    const { rig, dice, note } = round;
    const id = dice.pick(BROKERS);
    const { child } = rig.broker(id);
    const limit = (await largestFile(join(rig.directory(id), 'records'))) + dice.below(MAX_ROOM_BYTES);
    note(`${id} may write files of ${limit} bytes`);
    await limitFiles(child.pid!, `${limit}:unlimited`);
    await until(
      `${id} to fill its disk`,
      async () => !rig.broker(id).running || (await largestFile(join(rig.directory(id), 'records'))) >= limit,
      FULL_WITHIN_MS,
    );
    await sleep(dice.below(MAX_FULL_MS));
    // It may have ended meanwhile.
    await limitFiles(child.pid!, 'unlimited:unlimited').catch(() => undefined);
    await endsItself(round, id);
    await comesBack(round, id);
    await round.load.progress(2);
    await rig.inSync();
    await Promise.all(BROKERS.map((each) => rig.broker(each).kill()));
    await Promise.all(BROKERS.map((each) => rig.startBroker(each)));
  },
};

async function limitFiles(pid: number, softAndHard: string): Promise<void> {
  await run('prlimit', ['--pid', String(pid), `--fsize=${softAndHard}`]);
}

async function largestFile(directory: string): Promise<number> {
  const names = await readdir(directory);
  const sizes = await Promise.all(
    names.map(async (name) =>
      stat(join(directory, name)).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  );
  return Math.max(0, ...sizes);
}
