import { cp, rename, rm } from 'node:fs/promises';
import { BROKERS } from '../rig.ts';
import type { Fault } from '../round.ts';
import { comesBack } from './crash.ts';

/** A broker's directory is replaced by a copy of it that was made earlier. */
export const restored: Fault = {
  name: 'restored',
  async play(round) {
    const { rig, load, dice, note } = round;
    const id = dice.pick(BROKERS);
    const directory = rig.directory(id);
    const copy = `${directory}.copy`;
    const signal = dice.pick(['SIGTERM', 'SIGKILL'] as const);
    note(`${id}, ended by ${signal}`);
    await rig.inSync();
    await rig.broker(id).kill(signal);
    await cp(directory, copy, { recursive: true });
    await rig.startBroker(id);
    await load.progress(1 + dice.below(5));
    // Its records must be elsewhere too before they are taken from it.
    await rig.inSync();
    await rig.broker(id).kill(signal);
    await rm(directory, { recursive: true });
    await rename(copy, directory);
    await comesBack(round, id);
  },
};
