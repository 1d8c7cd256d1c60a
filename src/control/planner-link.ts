import type { Worker } from 'node:worker_threads';
import type { FromPlanner, PlannerCall, PlannerCalls, StatePart, ToPlanner } from './planner-messages.ts';

interface Asked {
  readonly resolve: (answer: never) => void;
  readonly reject: (error: Error) => void;
}

export interface PlannerLinkEvents {
  /** The thread has answered something. */
  readonly onAnswer: () => void;
  /** The thread is gone, and was not asked to go. */
  readonly onLost: (error: Error) => void;
}

/** One life of the planner's thread: what is asked of it is answered, or fails with its end. */
export class PlannerLink {
  readonly #worker: Worker;
  readonly #asked = new Map<number, Asked>();
  #lastId = 0;
  #ended: Error | null = null;

  constructor(worker: Worker, { onAnswer, onLost }: PlannerLinkEvents) {
    this.#worker = worker;
    // The node's life does not hang on it.
    worker.unref();
    worker.on('message', (message: FromPlanner) => {
      onAnswer();
      this.#take(message);
    });
    const lose = (error: Error): void => {
      if (this.#ended !== null) return;
      this.#fail(error);
      onLost(error);
    };
    worker.on('error', (error) => lose(error instanceof Error ? error : new Error(String(error))));
    worker.on('exit', (code) => lose(new Error(`the planner's thread ended with ${code}`)));
  }

  /** The thread's copy of the state begins anew. */
  reset(): void {
    this.#post({ type: 'reset' });
  }

  feed(part: StatePart): void {
    this.#post({ type: 'part', part });
  }

  ask<K extends keyof PlannerCalls>(
    call: K,
    params: PlannerCalls[K]['params'],
  ): Promise<PlannerCalls[K]['answer']> {
    return new Promise((resolve, reject) => {
      if (this.#ended !== null) {
        reject(this.#ended);
        return;
      }
      const id = ++this.#lastId;
      this.#asked.set(id, { resolve, reject });
      this.#post({ type: 'call', id, call: { call, params } as PlannerCall });
    });
  }

  /** Ends the thread, and with this error whatever is asked of it, now or later. */
  async end(error: Error): Promise<void> {
    if (this.#ended === null) this.#fail(error);
    await this.#worker.terminate();
  }

  #take(message: FromPlanner): void {
    const asked = this.#asked.get(message.id);
    this.#asked.delete(message.id);
    if (message.type === 'answered') asked?.resolve(message.answer as never);
    else asked?.reject(new Error(message.message));
  }

  #fail(error: Error): void {
    this.#ended = error;
    for (const { reject } of this.#asked.values()) reject(error);
    this.#asked.clear();
  }

  #post(message: ToPlanner): void {
    this.#worker.postMessage(message, []);
  }
}
