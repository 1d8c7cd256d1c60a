import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { NodeWorld } from '../../support/node-world.ts';

const IDS = ['n1', 'n2', 'n3'];

/** A world of whole nodes that serve and are then killed, as the simulator does it: nobody is told to stop. */
async function playOnce(): Promise<WeakRef<NodeWorld['world']>> {
  const world = new NodeWorld(IDS);
  await world.start(IDS);
  await world.world.run({ untilMs: 5_000 });
  for (const id of IDS) world.kill(id);
  return new WeakRef(world.world);
}

describe('the memory of a simulated world', () => {
  it('is given back once nobody holds the world: nothing of the process keeps a killed node', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const worlds = [await playOnce(), await playOnce()];
    // A reference stays strong until the job that made it is over.
    await new Promise((resolve) => setImmediate(resolve));
    collect();
    expect(worlds.map((world) => world.deref() === undefined)).toEqual([true, true]);
  });
});
