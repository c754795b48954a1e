"""The last hours of the appliance: figures by the minute, the lines drawn from them, recent shares."""
