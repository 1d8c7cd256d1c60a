import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from '../round.ts';

const MAX_CUT_MS = 6_000;

/** The leader of a shard and its follower cannot reach each other, in both directions or one; both reach the control plane. */
export const cutPair: Fault = {
  name: 'cut-pair',
  async play({ rig, health, load, dice, note }) {
    const { shard, leader, replicas } = dice.pick(await rig.rows());
    const follower = dice.pick(replicas.filter((id) => id !== leader));
    // Copies dial their leader, so this way is cut in any case.
    const links = [rig.link(follower, leader)];
    if (dice.below(3) > 0) links.push(rig.link(leader, follower));
    note(`${shard}: ${leader} and its follower ${follower}, ${links.length} of 2 ways cut`);
    for (const link of links) link.cut();
    await health.names(/^copies: /);
    await load.progress(1);
    await sleep(dice.below(MAX_CUT_MS));
    for (const link of links) link.mend();
  },
};
