import { cp } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePorts, type Process } from '../../support/cluster.ts';
import { Dice } from '../../support/dice.ts';
import { BROKERS, type Rig } from '../rig.ts';
import type { Fault } from '../round.ts';

const MIN_PAUSE_MS = 200;
const MAX_PAUSE_MS = 2_000;
const MIN_TURNS_MS = 6_000;
const MAX_TURNS_MS = 12_000;

/** Two processes with copies of one directory under one id, each started again whenever it ends. */
export const clones: Fault = {
  name: 'clones',
  async play(round) {
    const { rig, load, dice, note } = round;
    const id = dice.pick(BROKERS);
    await rig.inSync();
    await rig.broker(id).kill(dice.pick(['SIGTERM', 'SIGKILL'] as const));
    const second = `${rig.directory(id)}.clone`;
    await cp(rig.directory(id), second, { recursive: true });
    const [port = 0] = await freePorts(1);
    const supervisors = [
      new Supervisor(
        rig,
        { id, directory: rig.directory(id), port: rig.port(id) },
        new Dice(dice.below(2 ** 31)),
      ),
      new Supervisor(rig, { id, directory: second, port }, new Dice(dice.below(2 ** 31))),
    ];
    // One of them is refused while the other is connected: nobody misses a broker then.
    await sleep(MIN_TURNS_MS + dice.below(MAX_TURNS_MS - MIN_TURNS_MS));
    await load.progress(1);
    const starts = await Promise.all(supervisors.map((supervisor) => supervisor.stop()));
    note(`${id}, started ${starts.join(' and ')} times`);
    await rig.startBroker(id);
  },
};

class Supervisor {
  readonly #rig: Rig;
  readonly #what: { readonly id: string; readonly directory: string; readonly port: number };
  readonly #dice: Dice;
  readonly #loop: Promise<void>;
  #process: Process | null = null;
  #isOn = true;
  #starts = 0;

  constructor(rig: Rig, what: { id: string; directory: string; port: number }, dice: Dice) {
    this.#rig = rig;
    this.#what = what;
    this.#dice = dice;
    this.#loop = this.#run();
  }

  /** Ends its process for good and returns how often it was started. */
  async stop(): Promise<number> {
    this.#isOn = false;
    await this.#process?.kill();
    await this.#loop;
    return this.#starts;
  }

  async #run(): Promise<void> {
    while (this.#isOn) {
      this.#starts++;
      this.#process = this.#rig.spawn(this.#what.id, this.#what);
      await this.#process.exited;
      await sleep(MIN_PAUSE_MS + this.#dice.below(MAX_PAUSE_MS));
    }
  }
}
