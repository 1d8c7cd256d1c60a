import { WebSocket } from 'ws';
import { RpcFailure, type RpcError } from './cluster.ts';

interface Answer {
  readonly id: number;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: RpcError;
}

/** One WebSocket to a node's `/rpc`, no retries and no time-outs of its own: what is sent waits for its answer. */
export class RpcSocket {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #lastId = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data: Buffer) => {
      const answer = JSON.parse(data.toString('utf8')) as Answer;
      this.#waiting.get(answer.id)?.(answer);
      this.#waiting.delete(answer.id);
    });
    socket.on('error', () => undefined);
  }

  static async open(address: string): Promise<RpcSocket> {
    const socket = new WebSocket(`ws://${address}/rpc`, { perMessageDeflate: false });
    await new Promise((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('error', reject);
    });
    return new RpcSocket(socket);
  }

  /** Rejects with an RpcFailure. */
  async call(
    method: string,
    params: Readonly<Record<string, unknown>> = {},
  ): Promise<Readonly<Record<string, unknown>>> {
    const id = (this.#lastId += 1);
    const answer = await new Promise<Answer>((resolve) => {
      this.#waiting.set(id, resolve);
      this.#socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    });
    if (answer.error !== undefined) throw new RpcFailure(answer.error);
    return answer.result ?? {};
  }

  close(): void {
    this.#socket.terminate();
  }
}
