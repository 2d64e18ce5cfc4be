// shows the example that the address names: `/?seven`
import { createElement, StrictMode } from 'react';
import { createRoot } from 'react-dom/client';

const examples = import.meta.glob('./made/*.{ts,tsx}');
const name = location.search.slice(1);
const example = await (examples[`./made/${name}.tsx`] ?? examples[`./made/${name}.ts`])();
if (example.default) {
  const root = createRoot(document.getElementById('root'));
  root.render(createElement(StrictMode, null, createElement(example.default)));
}
