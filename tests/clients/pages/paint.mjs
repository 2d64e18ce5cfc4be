// First contentful paint of a page at 1280 x 900, in milliseconds; node paint.mjs CHROMIUM ADDRESS prints it.
import { chromium } from 'playwright-core';

/** Loads an address in a new page of the browser. */
export async function firstPaint(browser, address) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  await page.goto(address);
  await page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length);
  const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime);
  await page.close();
  return Math.round(paint);
}

if (process.argv[1].endsWith('paint.mjs')) {
  const browser = await chromium.launch({ executablePath: process.argv[2], args: ['--no-sandbox'] });
  console.log(await firstPaint(browser, process.argv[3]));
  await browser.close();
}
