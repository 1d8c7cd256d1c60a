import type { ClusterFile } from '../../placement/index.ts';
import { Cluster, RpcFailure, until } from './cluster.ts';
import { PlanWitness, type Moment } from './plan-witness.ts';
import type { Stage } from './stage.ts';
import { Watcher } from './watcher.ts';

/** No broker is silent unless it is down from the start. */
const FLAGS = ['--expiry-ms', '60000', '--lease-ms', '50000'];
/** Rounds of copying that a cluster is followed for; more than most need. */
const MOST_ROUNDS = 8;
/** Moves that are asked for by hand until one is taken. */
const MOST_ASKED = 4;

/** One quorum of three that cluster files are imported into, one after the other, its brokers played by the test. */
export class LivePlans {
  readonly #stage: Stage;
  #witness!: PlanWitness;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  async start(): Promise<void> {
    const stage = this.#stage;
    stage.cluster = await Cluster.start({ flags: FLAGS });
    stage.watcher = new Watcher(stage.endpoints);
    this.#witness = await PlanWitness.open(stage.cluster, stage.watcher);
  }

  close(): void {
    this.#witness.close();
  }

  /** Imports it over whatever there is, again until the plan of the very import was seen. */
  async import({ brokers, resources, assignments, policy }: ClusterFile): Promise<void> {
    for (const id of this.#stage.brokers.keys()) this.#stage.kill(id);
    const witness = this.#witness;
    await until('the plan of an import', async () => {
      const { importId } = await witness.call('import.begin', {});
      await witness.call('import.part', { importId, part: 0, brokers, resources, assignments });
      const last = { importId, parts: 1, policy, overwrite: true };
      const { revision } = await witness.call('import.commit', last);
      return await witness.sees(revision as number);
    });
  }

  /** The brokers of the file that are up register. From then on they do what they are told, but that copies wait for `copy`. */
  async join({ brokers }: ClusterFile): Promise<void> {
    const up = brokers.filter(({ lifecycle }) => lifecycle !== 'down');
    await Promise.all(
      up.map(({ id, zone, maxShards, weight }) => {
        const given = {
          id,
          weight,
          ...(zone !== null && { zone }),
          ...(maxShards !== null && { maxShards }),
        };
        return this.#stage.join(given, (broker) => (broker.hold.copy = true));
      }),
    );
  }

  /** Another member leads from here on: its planner begins with the whole state. */
  async changeLeader(): Promise<void> {
    await until('another leader', async () => await this.#witness.call('raft.transfer', {}));
  }

  /** What is behind comes into sync, all at once and round after round, each from rest to rest. Answers the last of these. */
  async copy(): Promise<Moment> {
    for (let round = 0; ; round++) {
      const rest = await this.#rest();
      if (round === MOST_ROUNDS || !this.#isBehind(rest.file)) return rest;
      await until('a copy in sync', async () => {
        const said = [...this.#stage.brokers.values()].map((broker) => broker.catchUp());
        return (await Promise.all(said)).some((shards) => shards > 0);
      });
    }
  }

  /** Hands a leadership over by hand: what has moved so is moved no more, and levels are put right by others. */
  async moveByHand({ file }: Moment, roll: (below: number) => number): Promise<boolean> {
    const choices = file.assignments.flatMap(({ shard, leader, replicas, move }) =>
      move === null ? replicas.filter((id) => id !== leader).map((to) => ({ shard, to })) : [],
    );
    for (let asked = 0; asked < MOST_ASKED && choices.length > 0; asked++) {
      const [choice] = choices.splice(roll(choices.length), 1);
      try {
        await this.#witness.call('move.start', { ...choice });
        return true;
      } catch (error) {
        if (!(error instanceof RpcFailure)) throw error;
      }
    }
    return false;
  }

  /** What was seen since the last call and rests on nothing that a file does not tell. */
  take(): Moment[] {
    return this.#witness.take().filter((moment) => this.#witness.isSaid(moment));
  }

  async #rest(): Promise<Moment> {
    const isAtRest = (moment: Moment): boolean =>
      moment.plan.steps.length === 0 && this.#witness.isSaid(moment);
    return await this.#witness.until('a cluster at rest', isAtRest);
  }

  #isBehind({ assignments }: ClusterFile): boolean {
    const isUp = (id: string): boolean => this.#stage.brokers.has(id);
    return assignments.some(
      ({ leader, replicas, inSync }) =>
        isUp(leader) && replicas.some((id) => isUp(id) && !inSync.includes(id)),
    );
  }
}
