/**
 * The parts of Mantine that these pages use; its styles for them are in styles/mantine.css. Add a component to both, run
 * `npm run build && npm run budget`, and look at what it costs. Whatever plain HTML does well is not here.
 *
 * Never pass responsive style props (`p={{ base: 1, sm: 2 }}`): Mantine writes a style element for them, which the page's
 * policy refuses. Layout belongs in a CSS module.
 */
export {
  Autocomplete,
  Button,
  type ButtonProps,
  Checkbox,
  Modal,
  NativeSelect,
  PasswordInput,
  Popover,
  Radio,
  SegmentedControl,
  Tabs,
  Textarea,
  TextInput,
  Tooltip,
} from "@mantine/core";
