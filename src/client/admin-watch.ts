import type { Clock } from '../../raft/index.ts';
import { EvenkeelError } from '../errors.ts';
import type { Net } from '../net.ts';
import { RpcLink, type Notification } from './admin-link.ts';

const CONNECT_TIMEOUT_MS = 2_000;
const ANSWER_TIMEOUT_MS = 10_000;
const RETRY_MS = 250;

export interface AdminWatchOptions {
  readonly net: Net;
  readonly clock: Clock;
  readonly endpoints: readonly string[];
  /** Go on after this revision; absent: from now. */
  readonly fromRevision?: number;
  /** `watch.changes`, `watch.snapshot`, `watch.resync` and `watch.progress`, in order. */
  onNotification(notification: Notification): void;
}

/**
 * Follows the cluster's changes, over whichever node answers: when a connection goes, the next continues after
 * the last revision seen. Rejects with what no other node would answer differently, and with `unreachable`
 * where no node could be reached to begin with.
 */
export class AdminWatch {
  readonly #options: AdminWatchOptions;
  #fromRevision: number | undefined;
  #link: RpcLink | null = null;
  #stopped = false;
  #begun = false;

  constructor(options: AdminWatchOptions) {
    this.#options = options;
    this.#fromRevision = options.fromRevision;
  }

  /** Resolves once stopped. */
  async run(): Promise<void> {
    const { endpoints, clock } = this.#options;
    for (let i = 0; !this.#stopped; i += 1) {
      try {
        await this.#follow(endpoints[i % endpoints.length] ?? '');
      } catch (error) {
        if (!(error instanceof EvenkeelError) || !error.retriable) throw error;
        if (!this.#begun && i + 1 >= endpoints.length) throw error;
      }
      if (this.#stopped) return;
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, RETRY_MS));
    }
  }

  stop(): void {
    this.#stopped = true;
    this.#link?.close();
  }

  /** Resolves when the connection goes. */
  async #follow(endpoint: string): Promise<void> {
    const { net, clock } = this.#options;
    const link = await RpcLink.open(net, clock, endpoint, CONNECT_TIMEOUT_MS);
    this.#link = link;
    const gone = new Promise<void>((resolve) => {
      link.onLost = resolve;
    });
    link.onNotification = (notification) => this.#take(notification);
    const fromRevision = this.#fromRevision;
    try {
      const params = fromRevision === undefined ? {} : { fromRevision };
      const answer = await link.request('watch', params, ANSWER_TIMEOUT_MS);
      this.#fromRevision ??= answer.revision;
      this.#begun = true;
      await gone;
    } finally {
      link.close();
    }
  }

  #take(notification: Notification): void {
    const { method, params } = notification;
    const { revision, done, more } = params;
    // What was cut short, a snapshot or a long revision, has to be sent again whole.
    const isWhole = method === 'watch.snapshot' ? done === true : more !== true;
    if (typeof revision === 'number' && isWhole) {
      this.#fromRevision = revision;
    }
    this.#options.onNotification(notification);
  }
}
