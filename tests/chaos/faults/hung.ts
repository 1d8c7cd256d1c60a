import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../support/cluster.ts';
import { HandBroker } from '../../support/hand-broker.ts';
import { BROKERS } from '../rig.ts';
import type { Fault, Round } from '../round.ts';
import { brokerNamed } from './crash.ts';

const MAX_HUNG_MS = 4_000;
const MUTE = 'b5';

/** A broker that does nothing any more: its process is stopped and continued, or it only registers and beats. */
export const hung: Fault = {
  name: 'hung',
  play: async (round) => (round.dice.below(2) === 0 ? stopped(round) : mute(round)),
};

async function stopped({ rig, health, dice, note }: Round): Promise<void> {
  const id = dice.pick(BROKERS);
  note(`${id} stopped and continued`);
  const { child } = rig.broker(id);
  child.kill('SIGSTOP');
  try {
    await health.names(brokerNamed(id));
    await sleep(dice.below(MAX_HUNG_MS));
  } finally {
    child.kill('SIGCONT');
  }
}

/** It is given copies and new shards, makes and confirms none, and is drained in the end. */
async function mute({ rig, health, dice, note }: Round): Promise<void> {
  note(`${MUTE} only registers and beats`);
  const broker = new HandBroker({
    id: MUTE,
    clusterId: rig.cluster.clusterId,
    endpoints: rig.cluster.nodes.map((_, node) => rig.cluster.address(node)),
  });
  Object.assign(broker.hold, { copy: true, drain: true, confirm: true });
  await broker.start();
  try {
    await health.names(/^(copies|leaders|moves|placement): /);
    await sleep(dice.below(MAX_HUNG_MS));
    await rig.rpc('broker.drain', { id: MUTE });
    await until(`${MUTE} to hold nothing`, async () => {
      const { broker: row } = await rig.rpc<{ broker: { copies: number } }>('broker.show', { id: MUTE });
      return row.copies === 0;
    });
  } finally {
    broker.stop();
  }
  // What failed at it counts against it while it is listed.
  await rig.rpc('broker.remove', { id: MUTE });
}
