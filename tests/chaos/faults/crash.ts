import { setTimeout as sleep } from 'node:timers/promises';
import type { Round } from '../round.ts';

const EXIT_STOPPED_ITSELF = 70;
const ENDS_WITHIN_MS = 30_000;
const MAX_AWAY_MS = 1_500;

/** What `cluster.health` says of a broker that is gone, or of the copies it lacks. */
export const brokerNamed = (id: string): RegExp => new RegExp(`^brokers: (.*; )?${id} |^copies: `);

/** The broker must end by itself, as one whose disk failed. */
export async function endsItself({ rig, fail }: Round, id: string): Promise<void> {
  const exit = await Promise.race([rig.broker(id).exited, sleep(ENDS_WITHIN_MS, null, { ref: false })]);
  if (exit === null) fail(`${id} goes on after its disk failed`);
  else if (exit.code !== EXIT_STOPPED_ITSELF) fail(`${id} ended with ${JSON.stringify(exit)}, not with 70`);
}

/** Leaves a broker that has ended dead until health has named it, or starts it at once. */
export async function comesBack(round: Round, id: string): Promise<void> {
  const { rig, health, dice, note } = round;
  if (dice.below(2) === 0) {
    note('started again at once');
  } else {
    await health.names(brokerNamed(id));
    await sleep(dice.below(MAX_AWAY_MS));
  }
  await rig.startBroker(id);
}
