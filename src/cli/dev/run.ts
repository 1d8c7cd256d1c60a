import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Levels, Plan } from '../../../placement/index.ts';
import { AdminClient, AdminWatch } from '../../client/index.ts';
import { EvenkeelError } from '../../errors.ts';
import type { BrokerItem, MemberRow, MoveItem, PlacementStatus } from '../../wire/index.ts';
import type { CliEnvironment } from '../environment.ts';
import { listShards } from '../shard.ts';
import { importCluster, readClusterFile } from '../transfer.ts';
import { Group } from './group.ts';
import {
  keepLayout,
  keptLayout,
  newLayout,
  type DevBroker,
  type Layout,
  type LayoutOptions,
} from './layout.ts';
import { MoveCounter } from './moves.ts';
import { Screen, type Frame } from './screen.ts';

const FRAME_MS = 250;
/** For one call; an election may pass meanwhile. */
const CALL_TIMEOUT_MS = 15_000;

export interface DevOptions extends LayoutOptions {
  readonly dataDir?: string;
  readonly copyRate?: number;
  readonly untilLevel?: boolean;
}

/** Runs until interrupted, or until level. Resolves with the exit code once every process has ended. */
export async function runDev(
  environment: CliEnvironment,
  options: DevOptions & { readonly timeoutMs: number },
): Promise<number> {
  const kept = options.dataDir === undefined ? null : await keptLayout(options.dataDir, options);
  const layout = kept ?? (await newLayout(environment, { cluster: lopsided(), ...options }));
  const dataDirectory = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'evenkeel-dev-')));
  await keepLayout(dataDirectory, layout);
  const group = new Group({ ports: layout.ports, dataDirectory, copyRate: options.copyRate });
  const interrupted = new Promise<'interrupted'>((resolve) => {
    environment.onInterrupt(() => resolve('interrupted'));
  });
  const outputLost = new Promise<string>((resolve) => environment.onOutputLost(resolve));
  let failed = true;
  try {
    const dev = new Dev(environment, group, options);
    const code = await Promise.race([
      dev.run(layout),
      interrupted.then(() => dev.interrupt()),
      outputLost.then((why) => dev.outputLost(why)),
    ]);
    failed = false;
    return code;
  } finally {
    await group.stop();
    if (options.dataDir === undefined && !failed) await rm(dataDirectory, { recursive: true, force: true });
    else environment.note(`data and logs are in ${dataDirectory}\n`);
  }
}

/** The example that comes with the package; sources and built files lie at different depths. */
function lopsided(): string {
  const root = import.meta.filename.endsWith('.ts') ? '../../../' : '../../../../';
  return fileURLToPath(new URL(`${root}examples/lopsided.json`, import.meta.url));
}

/** What the group is asked and shown, from its first node's start to the end. */
class Dev {
  readonly #environment: CliEnvironment;
  readonly #group: Group;
  readonly #options: DevOptions & { readonly timeoutMs: number };
  readonly #client: AdminClient;
  #screen: Screen | null = null;
  #watch: AdminWatch | null = null;
  #frame: Frame | null = null;
  #ended = false;

  constructor(
    environment: CliEnvironment,
    group: Group,
    options: DevOptions & { readonly timeoutMs: number },
  ) {
    this.#environment = environment;
    this.#group = group;
    this.#options = options;
    const { net, clock } = environment;
    this.#client = new AdminClient({ net, clock, endpoints: group.endpoints, timeoutMs: CALL_TIMEOUT_MS });
  }

  /** Resolves with the exit code, at level or at the time-out; never without `--until-level`. */
  async run(layout: Layout): Promise<number> {
    await this.#group.startNodes();
    const resume = await this.#begin(layout);
    await this.#group.startBrokers(layout.brokers);
    await this.#waitForBrokers(layout.brokers);
    const minimum = (await this.#client.read<Plan>('placement.plan')).minimumLeaderMoves;
    const counter = await this.#follow();
    if (resume) await this.#client.write('placement.resume');
    return this.#show(counter, minimum);
  }

  /** On a signal. */
  interrupt(): number {
    this.#finish(null);
    return this.#options.untilLevel === true ? 1 : 0;
  }

  /** It is there to be looked at: without its output it ends. */
  outputLost(why: string): number {
    this.#finish(null);
    this.#environment.note(`error: cannot write the output: ${why}; dev ends\n`);
    return 1;
  }

  /** Imports the cluster, paused, so that nothing moves before the brokers are there. Answers whether to end the pause. */
  async #begin({ cluster }: Layout): Promise<boolean> {
    const { items } = await this.#client.read<{ items: unknown[] }>('resource.list');
    if (items.length > 0) {
      this.#environment.note('the data directory holds a cluster already: nothing is imported\n');
      return false;
    }
    const file = await readClusterFile(this.#environment, cluster);
    await importCluster(this.#client, { ...file, policy: { ...file.policy, paused: true } }, true);
    return !file.policy.paused;
  }

  async #waitForBrokers(brokers: readonly DevBroker[]): Promise<void> {
    for (;;) {
      const { items } = await this.#client.read<{ items: BrokerItem[] }>('broker.list');
      const shards = await listShards(this.#client, {});
      const live = new Set(items.filter(({ lifecycle }) => lifecycle === 'live').map(({ id }) => id));
      const opened = shards.items.every(({ state }) => state !== 'assigning');
      if (brokers.every(({ id }) => live.has(id)) && opened) return;
      await this.#sleep();
    }
  }

  /** Counts moves from now on. */
  async #follow(): Promise<MoveCounter> {
    const { revision, items } = await listShards(this.#client, {});
    const counter = new MoveCounter(items, revision);
    const { net, clock } = this.#environment;
    this.#watch = new AdminWatch({
      net,
      clock,
      endpoints: this.#group.endpoints,
      fromRevision: revision,
      onNotification: (notification) => counter.take(notification),
    });
    void this.#watch.run().catch((error: unknown) => {
      if (!this.#ended) this.#environment.note(`the watch ended: ${String(error)}\n`);
    });
    return counter;
  }

  async #show(counter: MoveCounter, minimum: number | null): Promise<number> {
    const { clock } = this.#environment;
    this.#screen = new Screen(this.#environment, [
      `evenkeel dev: ${this.#group.nodes.length} nodes, ${this.#group.brokers.length} brokers, logs in ${this.#group.logDirectory}`,
      `endpoints ${this.#group.endpoints.join(',')}`,
    ]);
    const expiresAt = clock.now() + this.#options.timeoutMs;
    for (;;) {
      if (this.#ended) return 1;
      const frame = await this.#take(counter, minimum);
      // Interrupted meanwhile: the screen has been given back.
      if (this.#isEnded()) return 1;
      this.#frame = frame ?? this.#frame;
      if (frame !== null) this.#screen.show(frame);
      if (this.#options.untilLevel === true) {
        if (frame !== null && isLevel(frame)) return this.#finish(0);
        if (clock.now() >= expiresAt) {
          this.#finish(1);
          this.#environment.note(`not level within ${this.#options.timeoutMs} ms\n`);
          return 1;
        }
      }
      if (!this.#group.nodes.some((node) => node.running)) {
        throw new EvenkeelError('unavailable', 'every node has ended; their logs say why');
      }
      await this.#sleep();
    }
  }

  /** `null` while the cluster does not answer (an election): the last frame stays. */
  async #take(counter: MoveCounter, minimum: number | null): Promise<Frame | null> {
    type Status = { members: MemberRow[]; placement: PlacementStatus };
    try {
      const status = await this.#client.read<Status>('cluster.status', { consistency: 'local' });
      const levels = await this.#client.read<Levels>('placement.levels');
      const moves = await this.#client.read<{ items: MoveItem[] }>('move.list');
      const { term, leaderId, members, placement } = status;
      const finished = [...counter.finished];
      const seen = counter.revision >= Math.max(status.revision, levels.revision, moves.revision);
      return { term, leaderId, members, levels, placement, moves: moves.items, finished, seen, minimum };
    } catch (error) {
      if (error instanceof EvenkeelError && error.retriable) return null;
      throw error;
    }
  }

  #finish(code: number | null): number {
    this.#ended = true;
    this.#watch?.stop();
    this.#client.close();
    this.#screen?.end(this.#frame);
    return code ?? 0;
  }

  /** Read after an await. */
  #isEnded(): boolean {
    return this.#ended;
  }

  #sleep(): Promise<void> {
    return new Promise((resolve) => void this.#environment.clock.setTimeout(resolve, FRAME_MS));
  }
}

/** The planner wants nothing, nothing is under way, and every move it made has been seen. */
function isLevel({ placement, moves, levels, seen }: Frame): boolean {
  if (placement.level !== true || moves.length > 0 || !seen) return false;
  return levels.maxLeaderSpreadPerResource <= 1 && levels.leaderSpreadTotal <= 1;
}
