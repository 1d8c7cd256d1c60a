import { setTimeout as sleep } from 'node:timers/promises';
import { Dice } from '../support/dice.ts';
import { ShardClient } from './client.ts';
import { HealthLog } from './health-log.ts';
import { Ledger } from './ledger.ts';
import { Load } from './load.ts';
import { Rig } from './rig.ts';

/** Spreads neighbouring seeds over the dice. */
const GOLDEN = 0x9e37_79b1;
const MAX_CALM_MS = 1_500;
const HEALTHY_BOUND_MS = 60_000;
const LINES_SAID = 12;

/** What a fault may use. */
export interface Round {
  readonly rig: Rig;
  readonly load: Load;
  readonly ledger: Ledger;
  readonly health: HealthLog;
  readonly dice: Dice;
  /** Something in the run is not as promised. */
  readonly fail: (text: string) => void;
  /** For the report: what the seed chose. */
  readonly note: (text: string) => void;
}

export interface Fault {
  readonly name: string;
  /** Does harm and heals it: when it returns, every broker runs and every link is whole. */
  play(round: Round): Promise<void>;
}

export interface Report {
  readonly failures: readonly string[];
  readonly notes: readonly string[];
  readonly acknowledged: number;
  readonly longestGapMs: number;
  /** What the processes said, where something failed. */
  readonly said: string;
}

/** One round: a load, the fault at a random moment, and the records verifier at the end. */
export async function playRound(fault: Fault, seed: number): Promise<Report> {
  const failures: string[] = [];
  const notes: string[] = [];
  const fail = (text: string): void => void failures.push(text);
  const dice = new Dice(Math.imul(seed, GOLDEN));
  const rig = await Rig.start();
  const ledger = new Ledger(fail);
  const client = new ShardClient(rig.cluster);
  const load = new Load({ client, ledger, shards: rig.shards, seed: dice.below(2 ** 31), fail });
  const health = new HealthLog(rig.cluster);
  try {
    load.start();
    await load.progress(3);
    await sleep(dice.below(MAX_CALM_MS));
    await fault.play({ rig, load, ledger, health, dice, fail, note: (text) => void notes.push(text) });
    await load.progress(3);
    await rig.inSync();
    await load.stop();
    await load.verify();
    await health.isHealthyAgain(HEALTHY_BOUND_MS);
    await rig.cluster.sameHash();
  } catch (error) {
    fail(error instanceof Error ? error.message : String(error));
  } finally {
    await load.stop();
    await health.stop();
    client.close();
    await rig.stop();
  }
  const said = failures.length === 0 ? '' : rig.said(LINES_SAID);
  return { failures, notes, acknowledged: ledger.total, longestGapMs: load.longestGapMs, said };
}
