import type { Clock, Random } from '../../raft/index.ts';
import type { Registration } from '../broker-protocol.ts';
import { BrokerClient } from '../client/index.ts';
import type { Disk } from '../disk.ts';
import { EvenkeelError, type ErrorCode } from '../errors.ts';
import type { Listener, Net, Route } from '../net.ts';
import { Confirmer } from './confirmer.ts';
import { COPY_ADDRESS, COPY_PATH, COPY_SUBPROTOCOL, MAX_COPY_FRAME_BYTES } from './copy-protocol.ts';
import { CopySource } from './copy-source.ts';
import { DATA_ADDRESS, DATA_PATH, DATA_SUBPROTOCOL, MAX_DATA_FRAME_BYTES, serveData } from './data-api.ts';
import { openBrokerDirectory, type BrokerDirectory } from './data-directory.ts';
import type { LedShard } from './led-shard.ts';
import { Reporter } from './reporter.ts';
import { ShardKeeper } from './shard-keeper.ts';

export interface BrokerOptions {
  readonly id: string;
  readonly zone?: string;
  readonly maxShards?: number;
  readonly weight?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly clusterId: string;
  /** Any nodes of the control plane. */
  readonly endpoints: readonly string[];
  /** Where other brokers and clients reach this one; port 0 takes a free one. */
  readonly listen: string;
  readonly dataDir: string;
  /** Records a second to each copy that is being made. */
  readonly copyRate: number;
  /** Records put into a shard that is opened empty, so that there is something to copy; 0: none. */
  readonly seedRecords: number;
  readonly net: Net;
  readonly clock: Clock;
  readonly random: Random;
  readonly disk: Disk;
  readonly log: BrokerLog;
  /**
   * The broker had to stop by itself: it was replaced, refused for what it says of itself, or its store failed. It
   * serves and sends nothing more; its store may still be closing.
   */
  readonly onStopped?: (reason: Error) => void;
}

export interface BrokerLog {
  info(fields: Readonly<Record<string, unknown>>, message: string): void;
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
}

/** How often a broker that drains before it leaves asks whether it is empty, ms. */
const LEAVE_POLL_MS = 500;

/** Refusals of what it says of itself: a person has to change that, or make room. */
const FOR_EVER: ReadonlySet<ErrorCode> = new Set(['invalid_argument', 'limit_exceeded', 'wrong_cluster']);

/**
 * The reference broker: keeps its copies in a data directory, leads under a lease at the newest epoch it has seen,
 * copies to the other copies, and follows what the control plane decides.
 */
export class Broker {
  readonly #options: BrokerOptions;
  readonly #sources = new Set<CopySource>();
  #parts: Parts | null = null;
  #term = 0;
  /** The registration under which its store vouched for nothing. */
  #renewedAfter = 0;
  /** The revision of its registration: an older view is that of another life. */
  #servesFrom = 0;

  constructor(options: BrokerOptions) {
    this.#options = options;
  }

  /** Resolves once it listens and looks for the control plane. Rejects with `directory_in_use`, `wrong_directory`, `corrupt`, `address_in_use`. */
  async start(): Promise<{ readonly address: string }> {
    const { disk, dataDir, net, listen } = this.#options;
    const directory = await openBrokerDirectory(disk, dataDir, this.#options);
    let listener: Listener;
    try {
      listener = await net.listen(listen, {
        routes: { [COPY_PATH]: this.#copies(), [DATA_PATH]: this.#data() },
      });
    } catch (error) {
      await directory.close();
      throw error;
    }
    this.#parts = this.#assemble(directory, listener);
    this.#parts.client.start();
    return { address: listener.address };
  }

  /** Falls silent; what it led goes to others once its silence is noticed. */
  async stop(): Promise<void> {
    const parts = this.#parts;
    this.#parts = null;
    if (parts === null) return;
    parts.client.stop();
    parts.keeper.close();
    for (const source of [...this.#sources]) source.close(1001, 'the broker stops');
    await parts.listener.close();
    await parts.directory.close();
  }

  /** Leaves the cluster, emptied first where asked, and stops. */
  async leave(options: { readonly drain: boolean }): Promise<void> {
    const { clock, log } = this.#options;
    while (this.#parts !== null) {
      try {
        if ((await this.#parts.client.leave(options.drain)) === 'left') break;
      } catch (error) {
        log.warn({ error: String(error) }, 'could not ask to leave; asking again');
      }
      await new Promise<void>((resolve) => clock.setTimeout(resolve, LEAVE_POLL_MS));
    }
    await this.stop();
  }

  get incarnation(): number | null {
    return this.#parts?.client.incarnation ?? null;
  }

  /** Shards it may serve as leader right now. */
  get serving(): readonly string[] {
    return [...(this.#parts?.keeper.led.keys() ?? [])].filter((shard) => this.#mayServe(shard));
  }

  /** How many records it holds of a shard, and how many of them are acknowledged where it leads; `null`: no copy. */
  offsets(shard: string): { readonly end: number; readonly acknowledged: number | null } | null {
    const log = this.#parts?.directory.records.get(shard);
    if (log === undefined) return null;
    return { end: log.end, acknowledged: this.#parts?.keeper.led.get(shard)?.acknowledged ?? null };
  }

  #assemble(directory: BrokerDirectory, listener: Listener): Parts {
    const { clusterId, id, net, clock, random, endpoints, copyRate, seedRecords, log } = this.#options;
    const client = new BrokerClient({
      net,
      clock,
      random,
      endpoints,
      clusterId,
      registration: this.#registration(listener.address),
      store: directory.identity,
      handlers: {
        onRegistered: (incarnation, resumed, revision) => {
          log.info({ incarnation, resumed }, 'registered');
          if (resumed) return;
          this.#servesFrom = revision;
          keeper.startOver();
        },
        onView: (update) => {
          keeper.update(update);
          this.#checkStore();
        },
        onHeartbeat: ({ term }) => {
          reporter.beat(term !== this.#term);
          confirmer.beat();
          this.#term = term;
        },
        onRefused: (error) => {
          // These it is told for ever, however often it asks.
          if (FOR_EVER.has(error.code)) this.#fail(error);
          else log.warn({ code: error.code }, error.message);
        },
        onReplaced: () =>
          this.#fail(
            new EvenkeelError(
              'stale_incarnation',
              `another process has registered as broker ${id}: stop that one, or give this one an id of its own`,
            ),
          ),
      },
    });
    const keeper = new ShardKeeper({
      self: id,
      clusterId,
      net,
      clock,
      records: directory.records,
      view: client.view,
      copyRate,
      seedRecords,
      incarnation: () => (client.view.revision >= this.#servesFrom ? client.incarnation : null),
      onChange: (shard) => reporter.changed(shard),
      onOpened: (shard) => confirmer.opened(shard),
      onFailure: (error) => this.#fail(error instanceof Error ? error : new Error(String(error))),
    });
    const reporter = new Reporter(client, clock, keeper.led);
    const confirmer = new Confirmer(client, clock, keeper.led);
    directory.records.onFailure = (error) => this.#fail(error);
    return { directory, listener, client, keeper };
  }

  #registration(address: string): Registration {
    const { id, zone, maxShards, weight, labels } = this.#options;
    return {
      id,
      addresses: { [COPY_ADDRESS]: address, [DATA_ADDRESS]: address },
      ...(zone === undefined ? {} : { zone }),
      ...(maxShards === undefined ? {} : { maxShards }),
      ...(weight === undefined ? {} : { weight }),
      ...(labels === undefined ? {} : { labels }),
    };
  }

  /**
   * Its own row without a store id says that its directory was an older copy when it registered, or has a twin. No copy of
   * it counts as in sync; it takes a new store id, so that its next registrations keep what it copies from now on.
   */
  #checkStore(): void {
    if (this.#parts === null) return;
    const { client, directory } = this.#parts;
    const row = client.view.brokers.get(this.#options.id);
    if (row === undefined || row.incarnation !== client.incarnation || row.storeId !== null) return;
    if (row.incarnation === this.#renewedAfter) return;
    this.#renewedAfter = row.incarnation;
    this.#options.log.warn(
      { incarnation: row.incarnation },
      'the data directory is older than the one this broker last registered with: all its copies are made again',
    );
    directory.identity.renew().then(
      () => client.registerAgain(),
      (error: unknown) => this.#fail(error instanceof Error ? error : new Error(String(error))),
    );
  }

  #copies(): Route {
    const host = {
      clusterId: this.#options.clusterId,
      led: (shard: string) => this.#parts?.keeper.led.get(shard),
      incarnationOf: (id: string) => this.#parts?.client.view.brokers.get(id)?.incarnation ?? 0,
      ended: (source: CopySource) => this.#sources.delete(source),
    };
    return {
      subprotocols: [COPY_SUBPROTOCOL],
      maxPayloadBytes: MAX_COPY_FRAME_BYTES,
      onConnection: (connection) => this.#sources.add(new CopySource(host, connection)),
    };
  }

  #data(): Route {
    return {
      subprotocols: [DATA_SUBPROTOCOL],
      maxPayloadBytes: MAX_DATA_FRAME_BYTES,
      onConnection: (connection) => serveData({ serve: (shard) => this.#serve(shard) }, connection),
    };
  }

  #serve(shard: string): LedShard {
    const led = this.#parts?.keeper.led.get(shard);
    if (led === undefined || !this.#mayServe(shard)) {
      const leader = this.#parts?.client.view.assignments.get(shard)?.leader;
      const message = `broker ${this.#options.id} does not serve ${shard} at the moment; resolve its leader and retry`;
      throw new EvenkeelError('unavailable', message, leader === undefined ? {} : { leader });
    }
    return led;
  }

  /** Under a lease, at the newest epoch seen, confirmed, and on rows no older than the registration itself. */
  #mayServe(shard: string): boolean {
    if (this.#parts === null) return false;
    const { client, keeper } = this.#parts;
    const row = client.view.assignments.get(shard);
    const led = keeper.led.get(shard);
    return (
      client.hasLease() &&
      client.view.revision >= this.#servesFrom &&
      row?.state === 'active' &&
      led !== undefined &&
      !led.isBehind &&
      led.epoch === row.epoch
    );
  }

  /** Silent from this very call on: whatever has no answer yet gets none that says it was done. */
  #fail(error: Error): void {
    if (this.#parts === null) return;
    // What failed may keep the store from closing too, or hang. The end of the process closes it.
    this.stop().catch(() => {});
    this.#options.onStopped?.(error);
  }
}

interface Parts {
  readonly directory: BrokerDirectory;
  readonly listener: Listener;
  readonly client: BrokerClient;
  readonly keeper: ShardKeeper;
}
